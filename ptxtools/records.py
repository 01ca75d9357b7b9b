"""Named tuples and data classes that are made quickly: `typing.NamedTuple` and `dataclass` compile the methods of each
class from text, every time that a program starts, and `dataclasses` imports `inspect`, which takes longer than a small
file does. Here a class gets copies of methods that were compiled with this module, with names of their own; they behave
the same. What is rare (ordering, many fields, fields left out of `__init__`) the standard library makes."""

# mypy: allow-untyped-defs
from __future__ import annotations

import sys
from operator import attrgetter, itemgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

try:
    from _collections import _tuplegetter as _getter  # type: ignore[import-not-found]
except ImportError:  # another Python

    def _getter(place: int, _: None) -> Any:
        return property(itemgetter(place))


__all__ = ["NamedTuple", "astuple", "dataclass", "field", "fields", "replace"]

_new, _set = tuple.__new__, object.__setattr__


class _Missing:
    """The type of `MISSING`."""

    __slots__ = ()


#: What the standard library raises for names that are no fields.
_UNEXPECTED = TypeError if sys.version_info >= (3, 13) else ValueError
#: No default.
MISSING: Any = _Missing()

# --- templates --------------------------------------------------------------------------------------------------------

# By the number of fields; a copy has the fields' names in place of these letters.
# fmt: off
_NEW: tuple[Any, ...] = (
    lambda z: _new(z, ()),
    lambda z, a: _new(z, (a,)),
    lambda z, a, b: _new(z, (a, b)),
    lambda z, a, b, c: _new(z, (a, b, c)),
    lambda z, a, b, c, d: _new(z, (a, b, c, d)),
    lambda z, a, b, c, d, e: _new(z, (a, b, c, d, e)),
    lambda z, a, b, c, d, e, f: _new(z, (a, b, c, d, e, f)),
    lambda z, a, b, c, d, e, f, g: _new(z, (a, b, c, d, e, f, g)),
    lambda z, a, b, c, d, e, f, g, h: _new(z, (a, b, c, d, e, f, g, h)),
    lambda z, a, b, c, d, e, f, g, h, i: _new(z, (a, b, c, d, e, f, g, h, i)),
    lambda z, a, b, c, d, e, f, g, h, i, j: _new(z, (a, b, c, d, e, f, g, h, i, j)),
    lambda z, a, b, c, d, e, f, g, h, i, j, k: _new(z, (a, b, c, d, e, f, g, h, i, j, k)),
    lambda z, a, b, c, d, e, f, g, h, i, j, k, m: _new(z, (a, b, c, d, e, f, g, h, i, j, k, m)),
    lambda z, a, b, c, d, e, f, g, h, i, j, k, m, n: _new(z, (a, b, c, d, e, f, g, h, i, j, k, m, n)),
    lambda z, a, b, c, d, e, f, g, h, i, j, k, m, n, o: _new(z, (a, b, c, d, e, f, g, h, i, j, k, m, n, o)),
)
_FROZEN: tuple[Any, ...] = (
    lambda z: None,
    lambda z, a: _set(z, "a", a),
    lambda z, a, b: _set(z, "a", a) or _set(z, "b", b),
    lambda z, a, b, c: _set(z, "a", a) or _set(z, "b", b) or _set(z, "c", c),
    lambda z, a, b, c, d: _set(z, "a", a) or _set(z, "b", b) or _set(z, "c", c) or _set(z, "d", d),
)
def _plain1(z, a): z.a = a
def _plain2(z, a, b): z.a, z.b = a, b
def _plain3(z, a, b, c): z.a, z.b, z.c = a, b, c
def _plain4(z, a, b, c, d): z.a, z.b, z.c, z.d = a, b, c, d
def _plain5(z, a, b, c, d, e): z.a, z.b, z.c, z.d, z.e = a, b, c, d, e
def _plain6(z, a, b, c, d, e, f): z.a, z.b, z.c, z.d, z.e, z.f = a, b, c, d, e, f
def _plain7(z, a, b, c, d, e, f, g): z.a, z.b, z.c, z.d, z.e, z.f, z.g = a, b, c, d, e, f, g
def _plain8(z, a, b, c, d, e, f, g, h): z.a, z.b, z.c, z.d, z.e, z.f, z.g, z.h = a, b, c, d, e, f, g, h
def _plain9(z, a, b, c, d, e, f, g, h, i): z.a, z.b, z.c, z.d, z.e, z.f, z.g, z.h, z.i = a, b, c, d, e, f, g, h, i
def _plain10(z, a, b, c, d, e, f, g, h, i, j):
    z.a, z.b, z.c, z.d, z.e, z.f, z.g, z.h, z.i, z.j = a, b, c, d, e, f, g, h, i, j
def _plain11(z, a, b, c, d, e, f, g, h, i, j, k):
    z.a, z.b, z.c, z.d, z.e, z.f, z.g, z.h, z.i, z.j, z.k = a, b, c, d, e, f, g, h, i, j, k
def _plain12(z, a, b, c, d, e, f, g, h, i, j, k, m):
    z.a, z.b, z.c, z.d, z.e, z.f, z.g, z.h, z.i, z.j, z.k, z.m = a, b, c, d, e, f, g, h, i, j, k, m
def _plain13(z, a, b, c, d, e, f, g, h, i, j, k, m, n):
    z.a, z.b, z.c, z.d, z.e, z.f, z.g, z.h, z.i, z.j, z.k, z.m, z.n = a, b, c, d, e, f, g, h, i, j, k, m, n
def _plain14(z, a, b, c, d, e, f, g, h, i, j, k, m, n, o):
    z.a, z.b, z.c, z.d, z.e, z.f, z.g, z.h, z.i, z.j, z.k, z.m, z.n, z.o = a, b, c, d, e, f, g, h, i, j, k, m, n, o
# fmt: on


_PLAIN: tuple[Any, ...] = (
    lambda z: None,
    _plain1,
    _plain2,
    _plain3,
    _plain4,
    _plain5,
    _plain6,
    _plain7,
    _plain8,
    _plain9,
    _plain10,
    _plain11,
    _plain12,
    _plain13,
    _plain14,
)
_LETTERS = "abcdefghijkmno"


def _copy(template: Any, qualname: str, first: str, names: tuple[str, ...], keywords: bool = False) -> CodeType:
    """The code of a template with these names for its parameters, and for what it assigns."""
    code: CodeType = template.__code__
    given = dict(zip(_LETTERS, names, strict=False))
    return code.replace(
        co_name=qualname.rpartition(".")[2],
        co_qualname=qualname,
        co_varnames=(first, *names),
        co_names=tuple(given.get(name, name) for name in code.co_names),
        co_consts=tuple(given.get(one, one) if type(one) is str else one for one in code.co_consts),
        co_argcount=1 if keywords else 1 + len(names),
        co_kwonlyargcount=len(names) if keywords else 0,
    )


# --- named tuples -----------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _TupleMaker(type):
        """Makes the classes that derive from `NamedTuple`."""

        def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
            if not bases:
                return super().__new__(cls, name, bases, space)
            fields = tuple(space.get("__annotations__", ()))
            defaults = tuple(space[one] for one in fields if one in space)
            late = fields[len(fields) - len(defaults) :]
            if len(fields) >= len(_NEW) or "__annotations__" not in space or any(one not in space for one in late):
                import typing

                del space["__qualname__"]
                return typing.NamedTupleMeta(name, (typing._NamedTuple,), space)
            new = FunctionType(
                _copy(_NEW[len(fields)], f"{name}.__new__", "_cls", fields), globals(), "__new__", defaults
            )
            new.__annotations__ = space["__annotations__"]
            made = {
                **_TUPLE,
                "__new__": new,
                "__doc__": f"{name}({', '.join(fields)})",
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": dict(zip(late, defaults, strict=True)),
            }
            made.update(space)
            for place, one in enumerate(fields):
                made[one] = _getter(place, None)
            return type.__new__(type, name, (tuple,), made)

    class NamedTuple(metaclass=_TupleMaker):
        """As `typing.NamedTuple`."""


def _make(cls: Any, iterable: Any) -> Any:
    result = _new(cls, iterable)
    if len(result) != len(cls._fields):
        raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(result)}")
    return result


def _replace(self: Any, /, **changes: Any) -> Any:
    result = _make(type(self), map(changes.pop, self._fields, self))
    if changes:
        raise _UNEXPECTED(f"Got unexpected field names: {list(changes)!r}")
    return result


def _tuple_repr(self: Any) -> str:
    shown = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=False))
    return f"{self.__class__.__name__}({', '.join(shown)})"


def _asdict(self: Any) -> dict[str, Any]:
    return dict(zip(self._fields, self, strict=False))


def _arguments(self: Any) -> tuple[Any, ...]:
    return tuple(self)


_TUPLE = {
    "__slots__": (),
    "_make": classmethod(_make),
    "_replace": _replace,
    "__replace__": _replace,
    "__repr__": _tuple_repr,
    "_asdict": _asdict,
    "__getnewargs__": _arguments,
}


# --- fields -----------------------------------------------------------------------------------------------------------


class Field:
    """As `dataclasses.Field`."""

    __slots__ = (
        "compare",
        "default",
        "default_factory",
        "given",
        "init",
        "kw_only",
        "metadata",
        "name",
        "repr",
        "type",
    )

    def __init__(self, **given: Any) -> None:
        self.given = given
        self.name = self.type = ""
        self.default, self.default_factory = given.get("default", MISSING), given.get("default_factory", MISSING)
        self.repr, self.compare, self.init = given.get("repr", True), given.get("compare", True), True
        self.metadata, self.kw_only = given.get("metadata") or {}, False


class _Fields:
    """`__dataclass_fields__` of a class: the standard library's fields, made when somebody asks for them."""

    __slots__ = ("made", "own")

    def __init__(self, own: tuple[Field, ...]) -> None:
        self.own = own
        self.made: dict[str, Any] | None = None

    def __get__(self, instance: Any, owner: type) -> dict[str, Any]:
        if self.made is None:
            import dataclasses

            self.made = {}
            for one in self.own:
                found: Any = dataclasses.field(**one.given)
                found.name, found.type, found.kw_only = one.name, one.type, one.kw_only
                found._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
                self.made[one.name] = found
        return self.made


class _Parameters:
    """`__dataclass_params__` of a class."""

    __slots__ = (
        "eq",
        "frozen",
        "init",
        "kw_only",
        "match_args",
        "order",
        "repr",
        "slots",
        "unsafe_hash",
        "weakref_slot",
    )

    def __init__(self, options: dict[str, Any]) -> None:
        for name in self.__slots__:
            setattr(self, name, options.get(name, name in ("init", "repr", "eq", "match_args")))


def _fields_of(kind: type) -> tuple[Field, ...] | None:
    """The fields of a class that was made here; None for others."""
    for one in kind.__mro__:
        found = one.__dict__.get("__dataclass_fields__")
        if found is not None:
            return found.own if type(found) is _Fields else None
    return None


if TYPE_CHECKING:
    from dataclasses import astuple, dataclass, field, fields, replace
else:

    def field(**given: Any) -> Any:
        """As `dataclasses.field`."""
        return Field(**given)

    def fields(of: Any) -> tuple[Any, ...]:
        """As `dataclasses.fields`."""
        found = _fields_of(of if isinstance(of, type) else type(of))
        if found is None:
            import dataclasses

            return dataclasses.fields(of)
        return found

    def replace(of: Any, /, **changes: Any) -> Any:
        """As `dataclasses.replace`."""
        found = _fields_of(type(of))
        if found is None:
            import dataclasses

            return dataclasses.replace(of, **changes)
        for one in found:
            if one.name not in changes:
                changes[one.name] = getattr(of, one.name)
        return type(of)(**changes)

    def astuple(of: Any) -> tuple[Any, ...]:
        """As `dataclasses.astuple`."""
        import dataclasses

        return dataclasses.astuple(of)

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """As `dataclasses.dataclass`."""
        return _made(cls, options) if cls is not None else lambda cls: _made(cls, options)


# --- data classes -----------------------------------------------------------------------------------------------------

#: Options that are known here.
_KNOWN = frozenset({"eq", "frozen", "kw_only", "repr", "slots"})


def _made(cls: type, options: dict[str, Any]) -> Any:
    found = _own_and_inherited(cls, options) if options.keys() <= _KNOWN else None
    return _standard(cls, options) if found is None else _quick(cls, options, found)


def _own_and_inherited(cls: type, options: dict[str, Any]) -> tuple[Field, ...] | None:
    """The fields of a class; None if it has something that is not known here."""
    space = cls.__dict__
    found: dict[str, Field] = {}
    for base in cls.__mro__[-1:0:-1]:
        if "__dataclass_fields__" not in base.__dict__:
            continue
        of = base.__dict__["__dataclass_fields__"]
        if type(of) is not _Fields or base.__dict__["__dataclass_params__"].frozen != options.get("frozen", False):
            return None
        found.update((one.name, one) for one in of.own)
    keywords = options.get("kw_only", False)
    for name, kind in space.get("__annotations__", {}).items():
        if type(kind) is not str or "InitVar" in kind or "KW_ONLY" in kind:
            return None
        if kind.startswith("ClassVar"):
            continue
        given = space.get(name, MISSING)
        if type(given) is not Field:
            if type(given).__hash__ is None or type(given).__module__ == "dataclasses":
                return None
            given = Field() if given is MISSING else Field(default=given)
        if not given.given.keys() <= {"compare", "default", "default_factory", "metadata", "repr"}:
            return None
        given.name, given.type, given.kw_only = name, kind, keywords
        found[name] = given
    fields = tuple(found.values())
    needed = [one.default is MISSING and one.default_factory is MISSING for one in fields]
    if any(one.kw_only != keywords for one in fields) or (not keywords and sorted(needed, reverse=True) != needed):
        return None
    return fields


def _quick(cls: type, options: dict[str, Any], fields: tuple[Field, ...]) -> Any:
    """The class with the methods that its options ask for."""
    space, frozen, keywords = dict(cls.__dict__), options.get("frozen", False), options.get("kw_only", False)
    names = tuple(one.name for one in fields)
    owner: list[Any] = []
    made: dict[str, Any] = {
        "__dataclass_fields__": _Fields(fields),
        "__dataclass_params__": _Parameters(options),
        "__init__": _initialiser(cls, fields, frozen, keywords, owner),
        "__replace__": replace,
        "__signature__": _Signature(),
        "__match_args__": () if keywords else names,
    }
    if options.get("repr", True):
        made["__repr__"] = _repr
    if options.get("eq", True):
        values = _values([one.name for one in fields if one.compare])
        made["__eq__"] = _equality(values)
        if "__hash__" not in space or (space["__hash__"] is None and "__eq__" in space):
            made["__hash__"] = _hashing(values) if frozen else None
    for name in ("__repr__", "__eq__", "__match_args__", "__replace__"):
        if name in space:
            made.pop(name, None)
    if options.get("slots"):
        cls = _with_slots(cls, space, names, made, frozen)
        owner.append(cls)
        return cls
    owner.append(cls)
    for one in fields:
        if type(space.get(one.name)) is Field:
            if one.default is MISSING:
                delattr(cls, one.name)
            else:
                setattr(cls, one.name, one.default)
    for name, value in (made | (_unchanging(names, cls) if frozen else {})).items():
        setattr(cls, name, value)
    return cls


def _with_slots(cls: type, space: dict[str, Any], names: tuple[str, ...], made: dict[str, Any], frozen: bool) -> type:
    """The class made anew, with slots for its fields."""
    inherited: set[str] = set()
    for base in cls.__mro__[1:-1]:
        slots = base.__dict__.get("__slots__", ())
        inherited.update((slots,) if isinstance(slots, str) else slots)
    for name in (*names, "__dict__", "__weakref__"):
        space.pop(name, None)
    if frozen:
        made |= _unchanging(names)
        made |= {name: value for name, value in _STATE.items() if name not in space}
    slots = tuple(name for name in names if name not in inherited)
    found: type = type(cls)(cls.__name__, cls.__bases__, {**space, **made, "__slots__": slots})
    found.__qualname__ = cls.__qualname__
    return found


def _standard(cls: Any, options: dict[str, Any]) -> Any:
    """The class as the standard library makes it."""
    import dataclasses

    for name, value in list(cls.__dict__.items()):
        if type(value) is Field:
            setattr(cls, name, dataclasses.field(**value.given))
    return dataclasses.dataclass(cls, **options)


def _initialiser(cls: type, fields: tuple[Field, ...], frozen: bool, keywords: bool, owner: list[Any]) -> Any:
    """`__init__` of the class that will be in `owner`: a copy of a template, or one that the first object compiles."""
    names, templates = tuple(one.name for one in fields), _FROZEN if frozen else _PLAIN
    special = any(one.default_factory is not MISSING for one in fields) or hasattr(cls, "__post_init__")
    if not special and len(names) < len(templates):
        code = _copy(templates[len(names)], f"{cls.__qualname__}.__init__", "self", names, keywords)
        defaults = {one.name: one.default for one in fields if one.default is not MISSING}
        made: Any = FunctionType(code, globals(), "__init__", None if keywords else tuple(defaults.values()))
        made.__kwdefaults__ = defaults if keywords else None
        made.__annotations__ = {**{one.name: one.type for one in fields}, "return": None}
        return made

    def compiled() -> Any:
        owner[0].__init__ = made = _compiled(cls, fields, frozen, keywords)
        return made

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807 - it becomes that method
        compiled()(self, *given, **named)

    __init__.compiled = compiled  # type: ignore[attr-defined]
    return __init__


class _Signature:
    """`__signature__` of a class whose `__init__` may not be compiled: there is none, but then `__init__` has one."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        compiled = getattr(owner.__init__, "compiled", None) if instance is None else None
        if compiled is not None:
            compiled()
        raise AttributeError("__signature__")


def _compiled(cls: type, fields: tuple[Field, ...], frozen: bool, keywords: bool) -> Any:
    """`__init__` as `dataclasses` would write it."""
    space: dict[str, Any] = {"_set": _set, "_missing": MISSING}
    head, lines = "self, *" if keywords and fields else "self", []
    for number, one in enumerate(fields):
        name = value = one.name
        head += f", {name}"
        if one.default_factory is not MISSING:
            space[f"_make{number}"] = one.default_factory
            head += "=_missing"
            value = f"_make{number}() if {name} is _missing else {name}"
        elif one.default is not MISSING:
            space[f"_default{number}"] = one.default
            head += f"=_default{number}"
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({head}):\n " + "\n ".join(lines or ["pass"]), space)
    made = space["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**{one.name: one.type for one in fields}, "return": None}
    return made


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _values(names: list[str]) -> Any:
    """What reads the fields with these names as a tuple."""
    return attrgetter(*names, names[0]) if names else lambda _: ()  # more than one name gives a tuple


def _equality(values: Any) -> Any:
    """Equality by what `values` reads, of objects of one class."""

    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807 - it becomes that method
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hashing(values: Any) -> Any:
    """The hash of what `values` reads."""

    def __hash__(self: Any) -> int:  # noqa: N807 - it becomes that method
        return hash(values(self))

    return __hash__


def _unchanging(names: tuple[str, ...], cls: type | None = None) -> dict[str, Any]:
    """Methods of a class whose fields cannot change. cls: the class whose objects have no other attributes either;
    None: one with slots."""

    def refuse(self: Any, what: str, name: str) -> None:
        if cls is None or type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot {what} field {name!r}")

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807 - it becomes that method
        refuse(self, "assign to", name)
        _set(self, name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807 - it becomes that method
        refuse(self, "delete", name)
        object.__delattr__(self, name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        _set(self, one.name, value)


#: How objects with slots that cannot change are copied and sent.
_STATE = {"__getstate__": _get_state, "__setstate__": _set_state}
