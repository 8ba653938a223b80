"""A net in ONNX format that looks words up: three numbers for each."""

from pathlib import Path

import numpy as np

WORDS = ["[PAD]", "[UNK]", "cat", "dog", "house", "tree"]
TABLE = np.array([[9, 9, 9], [0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1]], np.float32)


def make_net(folder: Path) -> Path:
    """The folder, with the net and its tokenizer, which reads four tokens of a text."""
    import onnx
    import tokenizers

    folder.mkdir()
    helper = onnx.helper
    integers, floats = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "tiny",
        [
            helper.make_tensor_value_info("input_ids", integers, ["n", "t"]),
            helper.make_tensor_value_info("attention_mask", integers, ["n", "t"]),
        ],
        [helper.make_tensor_value_info("last_hidden_state", floats, ["n", "t", 3])],
        [onnx.numpy_helper.from_array(TABLE, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(max_length=4)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
