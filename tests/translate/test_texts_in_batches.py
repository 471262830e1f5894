"""Batches with texts beside their tensors: names of files, captions, which JAX has no arrays for."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

from .printed import printed

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self, names=None):
        self.x = torch.linspace(-1, 1, 24).reshape(6, 4)
        self.y = torch.tensor([0, 1, 2, 0, 1, 2])
        self.names = names if names is not None else [f"image {i}" for i in range(6)]

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return SAMPLE

model = nn.Linear(4, 3)
for p in model.parameters():
    nn.init.constant_(p, 0.1)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
loader = DataLoader(Images(), batch_size=3)

"""
DICT = (
    HEAD.replace("SAMPLE", '{"image": self.x[i], "label": self.y[i], "name": self.names[i]}')
    + """
for batch in loader:
    loss = criterion(model(batch["image"]), batch["label"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4), batch["name"])

def wrong(loader):
    found = []
    for batch in loader:
        guess = model(batch["image"]).argmax(dim=1)
        for name, p, y in zip(batch["name"], guess, batch["label"]):
            if p.item() != y.item():
                found.append(name.upper())
    return found

print(wrong(loader))
first = next(iter(loader))
print(first["name"][0], round(first["image"].sum().item(), 3))
"""
)
TUPLE = (
    HEAD.replace("SAMPLE", "self.x[i], self.y[i], self.names[i]")
    + """
for batch in loader:
    x, y, names = batch
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4), names)
for batch in loader:
    loss = criterion(model(batch[0]), batch[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4), batch[2][0])
for i, (x, y, names) in enumerate(loader):
    print(i, names[0].upper(), round(model(x).sum().item(), 4))
x, y, names = next(iter(loader))
print(names[-1], y.tolist())
"""
)
PASSED = DICT.replace("Images()", "make()").replace(
    "loader = ", "def make():\n    return Images(open('names').read().split('/'))\nloader = "
)
WHOLE = (
    HEAD.replace("SAMPLE", '{"image": self.x[i], "label": self.y[i], "name": self.names[i]}')
    + """
def loss_of(batch):
    return criterion(model(batch["image"]), batch["label"])

for batch in loader:
    loss = loss_of(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)
COLLATED = (
    HEAD.replace("SAMPLE", "self.names[i], self.x[i], self.y[i]")
    .replace(
        "loader =",
        "def collate(rows):\n    names, x, y = zip(*rows)\n    return torch.stack(x), torch.stack(y)\n\nloader =",
    )
    .replace("batch_size=3", "batch_size=3, collate_fn=collate")
    + """
for x, y in loader:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4))
"""
)


COLLATING = """
class Collate:
    def __call__(self, rows):
        return torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows]), [r[2] for r in rows]

"""


@pytest.mark.parametrize("source", [DICT, TUPLE], ids=["dict", "tuple"])
def test_texts_stay_and_a_step_is_given_the_tensors_beside_them(source: str) -> None:
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)


def test_a_step_takes_the_parts_of_a_batch_under_their_keys() -> None:
    code = convert(DICT).code
    assert "def train_step(model, optimizer, image, label):" in code
    assert 'train_step(batch["image"], batch["label"])' in code
    assert 'jax.tree.map(lambda t: jnp.asarray(t) if hasattr(t, "shape") else t, batch)' in code


def test_parts_of_which_nothing_is_known_stay_if_they_are_no_tensors() -> None:
    code = convert(PASSED).code
    assert 'jax.tree.map(lambda t: jnp.asarray(t) if hasattr(t, "shape") else t, batch)' in code
    assert 'train_step(batch["image"], batch["label"])' in code


def test_a_batch_of_tensors_is_passed_as_a_whole() -> None:
    code = convert(DICT.replace(', "name": self.names[i]', "").replace(', batch["name"]', "")).code
    assert "jax.tree.map(jnp.asarray, batch)" in code
    assert "train_step(batch)" in code


def test_a_function_that_a_step_calls_is_given_the_arrays_of_the_batch() -> None:
    source = WHOLE + "    print(round(loss.item(), 4), batch['name'])\n"
    result = convert(source)
    assert not result.gaps
    assert '{k: v for k, v in batch.items() if hasattr(v, "shape")}' in result.code
    assert printed(result.code) == printed(source)


def test_a_function_that_reads_the_texts_in_a_step_is_left_and_said() -> None:
    gaps = convert(WHOLE.replace("return crit", "return len(batch['name']) * crit")).gaps
    assert ["texts" in gap.reason for gap in gaps] == [True]


MOVED = {
    "comprehension": "batch = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}",
    "is_tensor": "batch = {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}",
    "method": "batch = {k: (v.to(device) if hasattr(v, 'to') else v) for k, v in batch.items()}",
    "by name": "batch = {k: v.to(device) if k != 'name' else v for k, v in batch.items()}",
    "filtered": """names = batch["name"]
    batch = {k: v.to(device) for k, v in batch.items() if isinstance(v, torch.Tensor)}
    batch["name"] = names""",
    "loop": """for k, v in batch.items():
        if isinstance(v, torch.Tensor):
            batch[k] = v.to(device)""",
    "keys": """for k in batch.keys():
        if torch.is_tensor(batch[k]):
            batch[k] = batch[k].to(device)""",
    "by types": "batch = by_types(batch, device)",
    "anew": "batch = anew(batch)",
    "made": 'batch = dict(image=batch["image"].to(device), label=batch["label"].to(device), name=batch["name"])',
}
MOVERS = """
device = torch.device("cpu")

def by_types(data, device):
    if type(data) == torch.Tensor:
        return data.to(device)
    elif type(data) == dict:
        for k in data:
            data[k] = by_types(data[k], device)
        return data
    elif type(data) in [list, tuple]:
        data = [by_types(x, device) for x in data]
        return data
    else:
        return data

def anew(obj):
    if torch.is_tensor(obj):
        return obj.to(device, non_blocking=True)
    if isinstance(obj, dict):
        return {k: anew(v) for k, v in obj.items()}
    if isinstance(obj, (list, tuple)):
        return type(obj)(anew(v) for v in obj)
    return obj

"""


@pytest.mark.parametrize("moves", MOVED.values(), ids=MOVED)
def test_however_the_tensors_of_a_batch_are_moved_its_texts_stay(moves: str) -> None:
    source = DICT.replace("for batch in loader:\n    loss", f"{MOVERS}for batch in loader:\n    {moves}\n    loss")
    result = convert(source)
    assert not result.gaps
    assert 'train_step(batch["image"], batch["label"])' in result.code
    assert printed(result.code) == printed(source)


def test_what_a_collate_function_gives_counts_and_not_the_samples_of_the_dataset() -> None:
    result = convert(COLLATED)
    assert not result.gaps
    assert "x, y = np.asarray(x), np.asarray(y)" in result.code
    assert printed(result.code) == printed(COLLATED)


def test_what_a_collating_object_gives_counts_too() -> None:
    source = (
        HEAD.replace("SAMPLE", "self.x[i], self.y[i], self.names[i]")
        .replace("loader =", COLLATING + "loader =")
        .replace("batch_size=3", "batch_size=3, collate_fn=Collate()")
        + """
for x, y, names in loader:
    print(round(criterion(model(x), y).item(), 4), names)
"""
    )
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)


def test_a_loader_of_another_file_may_give_texts_where_the_loop_asks() -> None:
    source = """
import torch
from torch import nn

def train(model, train_loader, optimizer):
    for batch in train_loader:
        batch = {k: v.cuda() if torch.is_tensor(v) else v for k, v in batch.items()}
        loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    code = convert(source).code
    assert 'train_step(model, optimizer, batch["image"], batch["label"])' in code
    assert 'jnp.asarray(v) if hasattr(v, "shape") else v for k, v in batch.items()' in code


LABELS = """
class Points(Dataset):
    def __init__(self):
        self.x, self.y = [], []
        for i in range(6):
            self.x.append(torch.linspace(-1, 1, 4) * i)
            self.y.append(i % 4)
        self.x = torch.stack(self.x)
        self.y = torch.tensor(self.y)

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return self.x[i], self.y[i]

data = Points()
for x, y in DataLoader(data, batch_size=3):
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], (y > 1).float())
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4))
groups = [[] for _ in range(4)]
for x, y in zip(data.x, data.y):
    groups[y].append(x)
print([round(torch.stack(g).sum().item(), 3) for g in groups if len(g) > 1])
"""


def test_attributes_of_data_sets_that_become_tensors_are_arrays_outside() -> None:
    source = HEAD.replace("SAMPLE", "self.x[i], self.y[i]") + LABELS
    result = convert(source)
    assert not result.gaps and "static" not in result.code
    assert printed(result.code) == printed(source)


TRAINED = """
for batch in loader:
    loss = criterion(model(batch["image"]), batch["label"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4), batch["name"], batch.keys(), f"{batch.keys()}")
print(list(batch), model.state_dict().keys())
"""
IMAGE = 'torch.linspace(-1, 1, 4) * i, "label": i % 3, "name": f"image {i}"}'
LISTED = {
    "appended in a function": f"""def make(n):
    rows = []
    for i in range(n):
        rows.append({{"image": {IMAGE})
    return rows

rows = make(6)
""",
    "a comprehension, cut": f'every = [{{"image": {IMAGE} for i in range(9)]\nrows, rest = every[:6], every[6:]\n',
    "filled item by item": f"""def read(i):
    row = {{"image": {IMAGE.replace(', "name": f"image {i}"', "")}
    row["name"] = f"image {{i}}"
    return row

rows = []
for i in range(6):
    row = read(i)
    rows.append(row)
""",
    "of two parts": f'first = [{{"image": {IMAGE} for i in range(3)]\nrows = sorted(first + first, key=len)\n',
}


@pytest.mark.parametrize("name", LISTED)
def test_texts_of_samples_in_a_list_stay(name: str) -> None:
    source = HEAD.replace("loader = ", LISTED[name] + "loader = ").replace("Images()", "rows") + TRAINED
    result = convert(source)
    assert not result.gaps
    assert 'train_step(batch["image"], batch["label"])' in result.code
    assert printed(result.code) == printed(source)


def test_texts_of_pairs_in_a_list_stay() -> None:
    rows = 'rows = [(torch.linspace(-1, 1, 4) * i, i % 3, "ab"[i % 2]) for i in range(6)]\n'
    source = HEAD.replace("loader = ", rows + "loader = ").replace("Images()", "rows")
    source += TUPLE[TUPLE.index("\nfor batch in loader") :]
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)


def test_a_batch_of_tensors_shows_its_keys_as_a_dict() -> None:
    rows = "rows = [{'x': torch.linspace(-1, 1, 4) * i, 'b': torch.tensor(i % 3)} for i in range(6)]\n"
    source = (
        HEAD.replace("loader = ", rows + "loader = ").replace("Images()", "rows")
        + """
for batch in loader:
    loss = criterion(model(batch["x"]), batch["b"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4), batch.keys())
"""
    )
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)


BATCHES_OF_A_FUNCTION = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, batch):
        return self.fc(batch["x"])


class Method:
    def __init__(self):
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def loss_of(self, batch):
        x, y = batch["x"].to("cpu"), batch["y"].to("cpu")
        {inner}
        return {{"loss": ((self.model(batch) - y) ** 2).mean()}}

    def train(self, loader):
        for batch in loader:
            self.optimizer.zero_grad()
            loss = self.loss_of(batch)["loss"]
            loss.backward()
            self.optimizer.step()
            print(loss.item())


def make_loader(n):
    return [{{"title": {title}, "x": torch.ones(2, 3), "y": torch.zeros(2, 2)}} for i in range(n)]


Method().train(make_loader(3))
"""


def test_a_batch_that_functions_read_as_a_dict_is_no_array() -> None:
    converted = convert(BATCHES_OF_A_FUNCTION.format(inner="", title="torch.ones(2)"))

    assert not converted.gaps
    assert "asarray(batch)" not in converted.code


def test_texts_in_dicts_that_a_function_makes_are_left_out_of_the_step() -> None:
    converted = convert(BATCHES_OF_A_FUNCTION.format(inner="", title="[f'p{i}']"))

    assert not converted.gaps
    assert 'if hasattr(t, "shape") else t, batch)' in converted.code
    assert '{k: v for k, v in batch.items() if hasattr(v, "shape")}' in converted.code


def test_a_step_reads_no_texts_of_such_dicts() -> None:
    converted = convert(BATCHES_OF_A_FUNCTION.format(inner='batch = {**batch, "t": batch["title"]}', title="[f'p{i}']"))

    assert ["texts" in gap.reason for gap in converted.gaps] == [True]
