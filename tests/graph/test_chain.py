import hashlib
from itertools import count

import pytest

from agentd.core.errors import GraphError, StorageCorrupt, StorageFull
from agentd.memory.graph.journal import HEAD, LOG, JournalChain, JournalReceipt, Verdict
from agentd.testing.clock import FakeClock


class Files:
    """Files in memory. `torn` is how many bytes of the next append are written before it fails;
    with `is_stuck` the next replacing of the file fails.
    """

    def __init__(self):
        self.held = {}
        self.torn = None
        self.stuck = ""

    async def read(self, path):
        return self.held.get(path)

    async def append(self, path, data):
        whole, self.torn = self.torn, None
        self.held[path] = self.held.get(path, b"") + data[:whole]
        if whole is not None:
            raise StorageFull

    async def replace(self, path, data):
        if self.stuck == path:
            self.stuck = ""
            raise StorageFull
        self.held[path] = data


def a_chain(files):
    numbers = count()
    return JournalChain(files, FakeClock(), lambda: hashlib.sha256(b"%d" % next(numbers)).digest())


async def written(entries=5):
    files = Files()
    chain = a_chain(files)
    receipts = [await chain.append("inserted", b"record %d" % n) for n in range(entries)]
    return files, chain, receipts


async def test_entries_are_numbered_and_sound():
    files, chain, receipts = await written()
    assert [receipt.number for receipt in receipts] == [1, 2, 3, 4, 5]
    assert await chain.verify() == Verdict(5)
    assert files.held[LOG].count(b"\n") == 5


async def test_a_new_chain_is_sound():
    assert await a_chain(Files()).verify() == Verdict(0)


async def test_it_goes_on_after_a_restart():
    files, _, _ = await written()
    again = JournalChain(files, FakeClock())
    assert (await again.append("removed", b"more")).number == 6
    assert await again.verify() == Verdict(6)


async def is_proven(chain, content, receipt):
    (answer,) = await chain.proven([(content, receipt)])
    return answer


async def test_a_receipt_proves_its_content_and_no_other():
    _, chain, receipts = await written()
    assert await is_proven(chain, b"record 2", receipts[2])
    assert not await is_proven(chain, b"record 2", receipts[3])
    assert not await is_proven(chain, b"record 3", receipts[2])
    assert not await is_proven(chain, b"record 2", JournalReceipt(9, receipts[2].salt))


async def test_without_the_salt_no_guess_shows_what_an_entry_was_about():
    files, chain, receipts = await written()
    guess = b"record 2"
    log = files.held[LOG].decode()
    assert guess.decode() not in log
    assert hashlib.sha256(guess).hexdigest() not in log
    assert not await is_proven(chain, guess, JournalReceipt(receipts[2].number, b""))
    assert await chain.verify() == Verdict(5)


async def test_equal_content_has_digests_that_differ():
    files = Files()
    chain = a_chain(files)
    for _ in range(2):
        await chain.append("inserted", b"the same")
    one, other = (line.split()[3] for line in files.held[LOG].splitlines())
    assert one != other


@pytest.mark.parametrize("number", [1, 3, 5])
async def test_a_changed_entry_is_named(number):
    files, chain, _ = await written()
    lines = files.held[LOG].splitlines(keepends=True)
    for at in range(len(lines[number - 1])):
        changed = bytearray(lines[number - 1])
        changed[at] ^= 1
        files.held[LOG] = b"".join([*lines[: number - 1], bytes(changed), *lines[number:]])
        verdict = await chain.verify()
        assert verdict.bad == number, at
        assert verdict.entries == number - 1


async def test_an_entry_taken_out_put_in_or_moved_is_named():
    files, chain, _ = await written()
    lines = files.held[LOG].splitlines(keepends=True)
    for changed, bad in [
        ([*lines[:2], *lines[3:]], 3),
        ([*lines[:2], lines[1], *lines[2:]], 3),
        ([lines[1], lines[0], *lines[2:]], 1),
    ]:
        files.held[LOG] = b"".join(changed)
        assert (await chain.verify()).bad == bad


async def test_a_log_that_was_cut_off_lacks_its_next_entry():
    files, chain, _ = await written()
    lines = files.held[LOG].splitlines(keepends=True)
    for kept in range(5):
        files.held[LOG] = b"".join(lines[:kept])
        assert (await chain.verify()).bad == kept + 1
    del files.held[LOG]
    assert (await chain.verify()).bad == 1


async def test_a_chain_made_anew_behind_a_change_ends_elsewhere_than_the_head_says():
    files, chain, _ = await written()
    other = Files()
    forger = a_chain(other)
    for n in range(5):
        await forger.append("inserted", b"forged %d" % n)
    files.held[LOG] = other.held[LOG]
    assert (await chain.verify()).bad == 5


@pytest.mark.parametrize("head", [None, b"", b"5\n", b"x", b"0 " + b"1" * 64 + b"\n", b"\xff"])
async def test_a_head_record_that_is_gone_or_damaged_is_named(head):
    files, chain, _ = await written()
    files.held[HEAD] = head
    assert (await chain.verify()).bad == 0


async def test_nothing_is_added_to_a_chain_that_is_not_sound():
    files, _, receipts = await written()
    files.held[LOG] = files.held[LOG].replace(b"inserted", b"deleted_", 1)
    before = dict(files.held)
    chain = JournalChain(files, FakeClock())
    with pytest.raises(StorageCorrupt, match=r"entry 1 of memory/graph/chain\.txt"):
        await chain.append("inserted", b"more")
    with pytest.raises(StorageCorrupt):
        await is_proven(chain, b"record 0", receipts[0])
    assert files.held == before


@pytest.mark.parametrize("entries", [0, 2])
async def test_an_entry_that_a_crash_cut_anywhere_is_taken_away(entries):
    for torn in range(150):
        files, _, _ = await written(entries)
        files.torn = torn
        with pytest.raises(StorageFull):
            await JournalChain(files, FakeClock()).append("inserted", b"cut")
        restarted = JournalChain(files, FakeClock())
        assert (await restarted.verify()).is_sound
        assert (await restarted.append("inserted", b"next")).number == entries + 1
        assert await restarted.verify() == Verdict(entries + 1)


async def test_an_entry_is_kept_when_the_crash_came_before_the_head_record():
    files, chain, _ = await written(2)
    files.stuck = HEAD
    with pytest.raises(StorageFull):
        await chain.append("inserted", b"third")
    assert await chain.verify() == Verdict(3)
    assert (await chain.append("inserted", b"fourth")).number == 4
    assert await JournalChain(files, FakeClock()).verify() == Verdict(4)


async def test_a_first_entry_outlives_a_crash_before_its_head_record():
    files = Files()
    chain = a_chain(files)
    files.stuck = HEAD
    with pytest.raises(StorageFull):
        await chain.append("inserted", b"never begun")
    assert LOG not in files.held
    assert (await chain.append("inserted", b"first")).number == 1


async def test_garbage_behind_the_last_entry_is_taken_away():
    files, _, _ = await written(2)
    files.held[LOG] += b"\0" * 40 + b"\n3 nonsense\n"
    again = JournalChain(files, FakeClock())
    assert (await again.append("inserted", b"next")).number == 3
    assert await again.verify() == Verdict(3)


async def test_a_kind_is_one_plain_word():
    for kind in ("", "two words", "line\nbreak", "x" * 33):
        with pytest.raises(GraphError):
            await a_chain(Files()).append(kind, b"")
