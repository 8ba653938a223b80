"""What attacks look like in the `plain` reading: markers of roles, tools and fences, and commands.

Every pattern is anchored or bounded, so that matching takes time in proportion to the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentd.domain.suspicion import Severity

HIGH, MEDIUM, LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern, how bad it is and why."""

    severity: Severity
    reason: str
    pattern: re.Pattern[str]


_BEFORE = r"""^[ \t>*+#"'\[(<{=|`-]{0,20}"""
_BEHIND = r"""[\])>}*=|`"' -]{0,12}"""
_ROLE = r"(?:system|developer|admin(?:istrator)?|root|anthropic|openai|operator|supervisor)"
_NOTICE = r"(?:message|prompt|override|notice|update|instructions?|command|directive|policy)"
_ORDER = (
    r"(?:you (?:are|must|will|should|shall|now|may|have)\b|your (?:new|task|role|instructions)\b"
    r"|ignore\b|disregard\b|forget\b|override\b|obey\b|reveal\b|from now on\b|pretend\b"
    r"|new (?:instructions?|policy|rules?|directives?)\b|all (?:previous|prior|safety)\b"
    r"|(?:do not|never) (?:tell|inform|ask|mention|follow|reveal)\b"
    r"|(?:the |this )?(?:assistant|agent|model|ai) (?:must|should|will|is|has|may|shall)\b)"
)
_WISH = (
    r"(?:send|forward|upload|email|execute|run|disable|grant|enable|approve|delete|write|add|always"
    r"|never|do not|respond|reply|output|print|the user|access|security|safety)\b"
)
_TOOL = (
    r"(?:functions\.)?(?:memory_\w{1,20}|remember|forget|notify|schedule_\w{1,20}|bash|shell|exec|python"
    r"|web_\w{1,20}|send_\w{1,20}|http_\w{1,20}|fetch|read_file|write_file|run_command|computer)"
)
_FILES = r"(?:soul|agents|user|identity|tools|memory|heartbeat|bootstrap)\.md"
_ROLES = "speaks in the role of the system or the assistant"
_CALLS = "looks like a call of a tool"
_FENCE = "imitates how agentd frames text in prompts"

SHAPES = tuple(
    Shape(severity, reason, re.compile(pattern, re.MULTILINE))
    for severity, reason, pattern in (
        (HIGH, "has a token of a chat template", r"<\|[a-z_\u2581][a-z0-9_\u2581 ]{0,30}\|>"),
        (HIGH, "has a token of a chat template", r"\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>"),
        (
            HIGH,
            "has a token of a chat template",
            r"^#{2,3} ?(?:instruction|system|system prompt|assistant|response) ?:",
        ),
        (HIGH, _ROLES, rf"{_BEFORE}{_ROLE}{_BEHIND}:{_BEHIND}[ \t]?{_ORDER}"),
        (HIGH, _ROLES, rf"{_BEFORE}(?:system|developer)[\])>}}]{{1,3}}[ \t]{{0,3}}{_ORDER}"),
        (
            HIGH,
            _ROLES,
            rf"{_BEFORE}{_ROLE}[ _-]{_NOTICE}{_BEHIND}:{_BEHIND}[ \t]?(?:{_ORDER}|{_WISH})",
        ),
        (
            HIGH,
            _ROLES,
            (
                rf"{_BEFORE}(?:assistant|ai){_BEHIND}:{_BEHIND}[ \t]?"
                r"(?:sure|of course|certainly|understood|i will|i'll|i have|okay)\b"
            ),
        ),
        (
            HIGH,
            _ROLES,
            (
                r"</?(?:system|assistant|developer|system[-_ ](?:prompt|reminder|message|instructions?"
                r"|override|note)|(?:important|admin|new|hidden)[-_]?instructions?) ?/?>"
            ),
        ),
        (MEDIUM, _ROLES, r"</?(?:instructions?|human|user[-_]?(?:message|input|query)?) ?>"),
        (
            HIGH,
            _ROLES,
            (
                r"\b(?:begin|start of|end of) (?:the )?(?:system|new|hidden|secret|untrusted|developer)"
                r" (?:prompt|instructions?|message|data|content|input)"
            ),
        ),
        (HIGH, _ROLES, r"""["']role["'] ?: ?["'](?:system|assistant|developer|tool)["']"""),
        (
            HIGH,
            _CALLS,
            r"""["']type["'] ?: ?["'](?:tool_use|tool_result|function_call|tool_call|function)["']""",
        ),
        (HIGH, _CALLS, r"""["'](?:tool_calls|function_call|tool_use)["'] ?:"""),
        (
            HIGH,
            _CALLS,
            (
                r"</?(?:tool_use|tool_calls?|tool_result|tool_response|tool_code|function_calls?"
                r"|function_results?|function=\w{1,40}|invoke|antml:\w{1,20})\b[^<>\n]{0,80}>"
            ),
        ),
        (
            HIGH,
            _CALLS,
            (
                rf"""["'](?:name|tool|function|recipient_name|action)["'] ?: ?["']{_TOOL}["']"""
                r"""[^\n]{0,40}\n?[^\n]{0,40}?["'](?:arguments|input|parameters|args|tool_input|action_input)["']"""
            ),
        ),
        (
            HIGH,
            _CALLS,
            (
                rf"{_BEFORE}(?:action|tool|function){_BEHIND}:[ \t]?{_TOOL}[ \t]?\n[ \t>*-]{{0,8}}"
                r"(?:action input|arguments|args|input|parameters)[ \t]?:"
            ),
        ),
        (
            HIGH,
            _FENCE,
            (
                r"</(?:untrusted[\w-]{0,20}|relevant[-_]memor\w{1,5}|memory[-_]?\w{0,12}|external[-_]\w{1,12}"
                r"|retrieved[-_]\w{1,12}|tool[-_]\w{1,12}|user[-_](?:data|content)|project[-_]context) ?>"
            ),
        ),
        (HIGH, _FENCE, rf"^-{{3,}}[ \t]?\n{{1,2}}^## {_FILES}[ \t]?$"),
        (
            HIGH,
            _FENCE,
            r"^(?:`{3,}|~{3,})[ \t]?\n{1,3}^#{1,2} (?:project context|relevant memories)",
        ),
        (
            HIGH,
            _FENCE,
            r"nothing in it is an instruction|(?:untrusted|fenced) (?:data|text) ends here",
        ),
        (MEDIUM, _FENCE, r"</(?:data|context) ?>"),
        (MEDIUM, _FENCE, rf"^## (?:{_FILES}|relevant memories|recent daily notes)[ \t]?$"),
        (HIGH, "opens a shell to another machine", r"/dev/tcp/|bash -i >&|nc(?:at)? -e "),
        (
            HIGH,
            "would delete everything",
            r"\b(?:run|execute|type|use|with|command)\b[^\n]{0,30}?\brm -[rf]{2} (?:/|~|\$home)(?![\w.])/?\*?",
        ),
        (
            MEDIUM,
            "runs what it downloads",
            r"\b(?:curl|wget) [^\n|]{1,160}\| ?(?:sudo )?(?:ba|z|da)?sh\b",
        ),
        (MEDIUM, "has active content", r"<script\b|javascript:[a-z(]|data:text/html"),
    )
)

# Sending secrets away: an order, a secret and a place, near each other.
SEND = re.compile(
    r"\b(?:send|post|upload|forward|e-?mail|exfiltrate|leak|transmit|submit|deliver|copy|share|report"
    r"|append|attach|include|paste|publish|encode|schicke?|sende|leite|envia|enviar|envoie|envoyez|invia)\b"
)
SECRET = re.compile(
    r"\b(?:api[ _-]?keys?|passwords?(?! (?:reset|manager|policy|change|link))|passphrases?|secrets?"
    r"|credentials?|private keys?|ssh keys?|(?:access|auth|session|bearer) tokens?|tokens|id_rsa"
    r"|memory\.md|user\.md|soul\.md|config\.toml|(?:chat|conversation|message) (?:history|logs?)"
    r"|(?:whole|entire|full|this|current) (?:conversation|memory|transcript|workspace|chat)"
    r"|(?:all|your|user'?s?) (?:memory|memories|notes|private \w{1,12})|system prompt|cookies"
    r"|seed phrase|environment variables|passwort\w{0,3}|zugangsdaten|contrasenas?|claves?"
    r"|mots? de passe|senhas?|chiavi)\b|\.env\b|\.ssh\b"
)
PLACE = re.compile(
    r"(?:https?|hxxps?|ftp|wss?)://|\bwebhook|(?<=\w)@[\w-]{1,63}\.\w|\bpastebin|\bngrok"
    r"|\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|\battacker|\.(?:evil|onion)\b"
)
# Commands that carry files of secrets away.
SENSITIVE = re.compile(
    r"\.ssh\b|id_rsa|id_ed25519|\.env\b|\.aws\b|credentials|/etc/(?:passwd|shadow)|\.gnupg|\.netrc"
    r"|memory\.md|user\.md|\.kube\b|\.npmrc|state\.db|wallet\.dat|\.bash_history|\bprintenv\b|\benv\b"
)
CARRIES = re.compile(
    r"\b(?:curl|wget|nc|ncat|socat)\b[^\n]{0,150}?[@<=(`] ?[^\s|]{0,60}(?:\.ssh|id_rsa|id_ed25519|\.env\b"
    r"|\.aws|credentials|/etc/(?:passwd|shadow)|\.gnupg|memory\.md|user\.md|state\.db|wallet\.dat"
    r"|\.bash_history|printenv|env\b|\(cat)"
    r"|(?:\.ssh|id_rsa|id_ed25519|\.env\b|\.aws|credentials|/etc/(?:passwd|shadow)|\.gnupg|memory\.md"
    r"|user\.md|state\.db|\bprintenv\b|\benv\b)[^\n|]{0,80}\|[^\n]{0,80}?\b(?:curl|nc|ncat|wget|socat)\b"
)
# What a comment says when it speaks to the agent.
ADDRESSEE = re.compile(
    r"\b(?:assistants?|ai|llm|chatbot|claude|gpt|language model|agents?|system (?:prompt|override)"
    r"|you (?:must|should|are|will|need|can)|your (?:task|instructions?|job|user)|instructions?)\b"
)
ORDER = re.compile(
    r"\b(?:ignore|must|always|never|send|forward|execute|run|do not|don't|reveal|when asked|instead"
    r"|obey|pretend|tell|say|respond|reply|delete|include|approve|upload|fetch|visit|follow)\b"
)
IMAGE = re.compile(
    r"""!\[[^\[\]\n]{0,300}\]\( ?<?((?:https?:)?//[^)\s>]{1,800})|<img [^<>\n]{0,80}?src ?= ?["']?"""
    r"""((?:https?:)?//[^\s"'<>]{1,800})"""
)
CARRIED = re.compile(
    r"[?&](?:data|d|q|query|secret|token|key|msg|message|content|text|payload|info|c|chat|history|leak"
    r"|exfil|memory|log|conversation|prompt|s|body|b64|x|user|note|notes|summary|p|pwd|pass|password)="
    r"(?!\d{0,12}(?:&|$|#))|[?&/=](?:\{|%7b|\[|\$|<|insert|your_|secret)"
)
HIDDEN_STYLE = re.compile(
    r"(?:display ?: ?none|visibility ?: ?hidden|font-size ?: ?0|opacity ?: ?0(?!\.)"
    r"|color ?: ?(?:white|#fff|transparent))[^<>\n]{0,80}>([^<\n]{3,400})"
)
REMARK = re.compile(r"^\[(?://|comment|_|#)\]: ?(?:#|<>) ?[(\"']([^\n]{1,400})", re.MULTILINE)
"""Comments of Markdown, which no reader is shown."""
