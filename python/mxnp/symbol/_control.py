"""`mx.sym.contrib.foreach`, `while_loop` and `cond`: Python functions become graphs that one node holds.

A function is called once with symbols that stand for its arguments. What it uses from outside becomes an input of the
node. Knows nothing of how the node runs (`_table/control.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnp import attribute, util
from mxnp import name as names
from mxnp.attribute import AttrScope
from mxnp.error import MXNetError, MXNetTypeError, MXNetValueError

from . import _spec, _values
from ._compose import is_symbol
from ._node import Entry, Held, Node, ordered, variable
from ._operators import apply

# The attribute that tells the nodes of a held graph from those of the graph around it.
_OWNER = "__subgraph_name__"


def _symbols(value: Any, what: str) -> list[Any]:
    """One symbol, or a list of them, as a list."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    if not all(is_symbol(item) and len(item._entries) == 1 for item in items):
        raise MXNetTypeError(f"{what} must be a symbol of one output, or a list of them")
    return items


def _like(items: list[Any], value: Any) -> Any:
    """The list, or its only item where `value` is no list."""
    return list(items) if isinstance(value, (list, tuple)) else items[0]


class _Part:
    """A function as a held graph: `held`, and for each of its variables the entry of the outer graph.

    `stand_ins` are the variables of the function's arguments, `given` the entries of the outer graph they stand for.
    Those the function does not use are variables of the held graph only where `takes_all` (MXNet refuses such graphs).
    """

    def __init__(
        self,
        owner: str,
        results: Sequence[Any],
        stand_ins: Sequence[Node] = (),
        given: Sequence[Entry] = (),
        takes_all: bool = True,
    ) -> None:
        self.stand_ins = stand_ins
        heads = [_computed(result, owner)._entries[0] for result in results]
        # Results of the graph around, by node and output: the variables that stand for them inside, and they.
        outer: dict[tuple[int, int], tuple[Node, Entry]] = {}
        made: dict[int, Node] = {}

        def inside(each: Entry) -> Entry:
            node, output = each
            if node.spec is None:
                return each
            if _is_of(node, owner):
                return made.get(id(node), node), output
            if (id(node), output) not in outer:
                outer[id(node), output] = variable(node.outputs()[output], None, node.legacy), each
            return outer[id(node), output][0], 0

        for node in ordered(heads):
            if _is_of(node, owner):
                made[id(node)] = node.replaced([inside(each) for each in node.inputs])
        cut = [inside(each) for each in heads]
        used = [node for node in ordered(cut) if node.spec is None]
        self.unused = [node for node in stand_ins if all(node is not each for each in used)]
        self.held = Held(cut, [*self.unused, *used] if takes_all else used)
        stands_for = {id(node): entry for node, entry in outer.values()}
        stands_for.update({id(node): entry for node, entry in zip(stand_ins, given, strict=True)})
        self.entries = [stands_for.get(id(node), (node, 0)) for node in self.held.variables]

    def places(self, inputs: list[Entry]) -> tuple[int, ...]:
        """The number of each argument among the node's inputs: stand-ins are the first, others are added as needed."""
        found = []
        first = len(self.stand_ins)
        for own, (node, output) in zip(self.held.variables, self.entries, strict=True):
            same = [i for i, each in enumerate(self.stand_ins) if each is own] or [
                # What changes from step to step is not what was there before the loop.
                i
                for i in range(first, len(inputs))
                if inputs[i][0] is node and inputs[i][1] == output
            ]
            if not same:
                inputs.append((node, output))
            found.append(same[0] if same else len(inputs) - 1)
        return tuple(found)


def _is_of(node: Node, owner: str) -> bool:
    """Whether a node is an operator that the function has made."""
    return node.spec is not None and node.attrs.get(_OWNER) == owner


def _computed(result: Any, owner: str) -> Any:
    """The result as one of the function's own operators: what it only passes on is copied."""
    if _is_of(result._entries[0][0], owner):
        return result
    with AttrScope(**{_OWNER: owner}):
        return apply("_copy", "identity", result, cls=type(result))


def _stand_ins(owner: str, items: list[Any], hint: str) -> tuple[list[Any], list[Node]]:
    """Variables of the held graph in the place of arrays, as symbols."""
    legacy = not util.is_np_shape()
    nodes = [variable(f"{owner}_{hint}{i}", {_OWNER: owner}, legacy) for i in range(len(items))]
    return [type(item)([(node, 0)]) for item, node in zip(items, nodes, strict=True)], nodes


def _node(op: str, name: str, inputs: list[Entry], parts: Sequence[_Part], **attrs: Any) -> Node:
    spec = _spec.find(op)
    assert spec is not None
    texts = {**attribute.current(), **{key: _values.write(value) for key, value in attrs.items()}}
    texts["num_args"] = str(len(inputs) + len(parts))
    node = Node(spec, name, texts, inputs, not util.is_np_shape())
    node.graphs = tuple(part.held for part in parts)
    return node


def foreach(
    body: Callable[[Any, Any], tuple[Any, Any]],
    data: Any,
    init_states: Any,
    name: str = "foreach",
    *,
    keep_unused: bool = False,
) -> Any:
    """`body(slice, states) -> (outputs, states)` for each slice of `data` along axis 0, as one operator.

    `data`, `init_states` and outputs are symbols or lists of them. Gives the stacked outputs and the last states.
    `body` must use all of them, unless `keep_unused` allows a graph that MXNet cannot read.

    >>> x, s = mx.sym.var("x"), mx.sym.var("s")
    >>> total, last = mx.sym.contrib.foreach(lambda x, s: (x + s, x + s), x, s)
    >>> total.eval(x=np.array([1, 2, 3]), s=np.array(0))[0]
    array([1., 3., 6.])
    """
    owner = names.current().get(None, name)
    slices, states = _symbols(data, "foreach: data"), _symbols(init_states, "foreach: init_states")
    ours, data_nodes = _stand_ins(owner, slices, "data")
    theirs, state_nodes = _stand_ins(owner, states, "state")
    with AttrScope(**{_OWNER: owner}):
        outputs, new = body(_like(ours, data), _like(theirs, init_states))
    outs, news = _symbols(outputs, "foreach: an output"), _symbols(new, "foreach: a new state")
    if len(news) != len(states):
        raise MXNetValueError(f"foreach: the body gives {len(news)} states for {len(states)}")
    entries = [item._entries[0] for item in (*slices, *states)]
    stand_ins = [*data_nodes, *state_nodes]
    part = _Part(owner, [*outs, *news], stand_ins, entries)
    if part.unused and not keep_unused:
        raise MXNetError("foreach: the body must use each of the data and of the states")
    places = {id(node): i for i, node in enumerate(part.held.variables)}
    own = [places[id(node)] for node in stand_ins]
    remain = [i for i in range(len(part.entries)) if i not in own]
    node = _node(
        "_foreach",
        owner,
        [*entries, *(part.entries[i] for i in remain)],
        [part],
        num_outputs=len(outs) + len(news),
        num_out_data=len(outs),
        in_data_locs=tuple(own[: len(slices)]),
        in_state_locs=tuple(own[len(slices) :]),
        remain_locs=tuple(remain),
    )
    made = _outputs(node, type(slices[0]))
    return _like(made[: len(outs)], outputs), _like(made[len(outs) :], init_states)


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: int | None = None,
    name: str = "while_loop",
    *,
    keep_unused: bool = False,
) -> Any:
    """`func(*vars) -> (outputs of a step, vars)` while `cond(*vars)` holds, as one operator.

    Gives the outputs stacked, with room for `max_iterations` steps, and the last variables. `func` must use all of
    them, unless `keep_unused` allows a graph that MXNet cannot read.

    >>> i = mx.sym.var("i")
    >>> steps, last = mx.sym.contrib.while_loop(lambda i: i < 2, lambda i: (i * 1, i + 1), i, max_iterations=3)
    >>> steps.eval(i=np.array([0]))[0].tolist()
    [[0.0], [1.0], [0.0]]
    """
    if max_iterations is None or max_iterations < 0:
        raise MXNetValueError("while_loop: max_iterations should be specified, at least 0")
    variables = _symbols(loop_vars, "while_loop: a loop variable")
    entries = [each._entries[0] for each in variables]
    owner = names.current().get(None, name)
    first, first_nodes = _stand_ins(f"{owner}_cond", variables, "var")
    with AttrScope(**{_OWNER: f"{owner}_cond"}):
        holds = _symbols(cond(*first), "while_loop: the condition")
    second, second_nodes = _stand_ins(f"{owner}_func", variables, "var")
    with AttrScope(**{_OWNER: f"{owner}_func"}):
        outputs, new = func(*second)
    outs, news = _symbols(outputs, "while_loop: an output"), _symbols(new, "while_loop: a new variable")
    if len(news) != len(variables):
        raise MXNetValueError(f"while_loop: the body gives {len(news)} variables for {len(variables)}")
    parts = [
        _Part(f"{owner}_cond", holds, first_nodes, entries, takes_all=False),
        _Part(f"{owner}_func", [*outs, *news], second_nodes, entries),
    ]
    if parts[1].unused and not keep_unused:
        raise MXNetError("while_loop: the body must use each of the loop variables")
    inputs = list(entries)
    places = {id(node): i for i, node in enumerate(parts[1].held.variables)}
    node = _node(
        "_while_loop",
        owner,
        inputs,
        parts,
        num_outputs=len(outs) + len(news),
        num_out_data=len(outs),
        max_iterations=max_iterations,
        cond_input_locs=parts[0].places(inputs),
        func_input_locs=parts[1].places(inputs),
        func_var_locs=tuple(places[id(n)] for n in second_nodes),
    )
    made = _outputs(node, type(variables[0]))
    return _like(made[: len(outs)], outputs), _like(made[len(outs) :], loop_vars)


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str = "cond") -> Any:
    """`then_func()` where `pred` (a symbol, or a function that gives one) is true, else `else_func()`, as one operator.

    >>> x = mx.sym.var("x")
    >>> y = mx.sym.contrib.cond(mx.sym.sum(x) > 0, lambda: x * 2, lambda: -x)
    >>> y.eval(x=np.array([-3]))[0]
    array([3.])
    """
    owner = names.current().get(None, name)
    inputs: list[Entry] = []
    condition = (lambda: pred) if is_symbol(pred) else pred
    parts, counts, places = [], set(), []
    shown: Any = None
    for side, function in (("pred", condition), ("then", then_func), ("else", else_func)):
        with AttrScope(**{_OWNER: f"{owner}_{side}"}):
            result = function()
        results = _symbols(result, f"cond: the result of {side}")
        parts.append(_Part(f"{owner}_{side}", results))
        places.append(parts[-1].places(inputs))
        if side != "pred":
            counts.add(len(results))
            shown = result
    if len(counts) != 1:
        raise MXNetValueError(f"cond: the sides give {' and '.join(map(str, sorted(counts)))} results")
    node = _node(
        "_cond",
        owner,
        inputs,
        parts,
        num_outputs=counts.pop(),
        cond_input_locs=places[0],
        then_input_locs=places[1],
        else_input_locs=places[2],
    )
    return _like(_outputs(node, type(_symbols(shown, "")[0])), shown)


def _outputs(node: Node, kind: type) -> list[Any]:
    return [kind([(node, i)]) for i in range(len(node.outputs()))]
