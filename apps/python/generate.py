#!/usr/bin/env python3
"""Bindings of the ops from the library's own headers: one declaration gives the C++ function, its Python function and
its docstring.

usage: generate.py INCLUDE_DIR OUT_DIR

Reads the headers that <braid/autograd.h> includes, and tensor.h, and writes C++ files that bind the free functions of
namespace braid which take and give tensors, numbers, shapes and options. Options structs become keyword arguments.
Inline functions and templates are conveniences of C++ and are left out, as is what stands in SKIPPED. A parameter of a
type without a rule is an error, so that no other op is forgotten.
"""
import keyword
import re
import sys
from dataclasses import dataclass, field

# What has another form in Python, by its place there or the reason why it has none.
SKIPPED = {
    "at": "Tensor.__getitem__ and item()", "tensor": "asarray()", "arange": "module.cpp, which has all its forms",
    "tap": "module.cpp: takes a function", "recompute": "module.cpp: takes a function",
    "gradcheck": "module.cpp: takes a function", "gradgradcheck": "module.cpp: takes a function",
    "jacobian": "module.cpp: takes a function", "hessian": "module.cpp: takes a function",
    "vjp": "module.cpp: takes a function", "value_and_grad": "module.cpp: takes a function",
    "jvp": "module.cpp: takes a function", "hvp": "module.cpp: takes a function",
    "record": "custom_op()", "record_many": "custom_op()", "no_gradient": "for ops in C++",
    "recording": "is_recording()", "require_grad": "Tensor.requires_grad_", "requires_grad": "Tensor.requires_grad",
    "grad": "module.cpp: may give None", "set_grad": "Tensor.grad", "zero_grad": "Tensor.grad = None",
    "backward": "Tensor.backward", "on_grad": "Tensor.register_hook",
}
# Tensors without a default that may be an empty handle: None.
OPTIONAL = {"rms_norm": ("weight",), "layer_norm": ("weight", "bias"), "add_rms_norm": ("residual", "weight"),
            "add_layer_norm": ("residual", "weight", "bias"), "compose_factors": ("w",)}
# Functions whose first tensor has them as methods too.
METHODS = set("""
abs all amax amin any argmax argmin argsort broadcast_to chunk clamp contiguous cos count_nonzero cumprod cumsum
diagonal diff dot erf exp expand flatten flip floor gather index_select inverse isfinite isinf isnan log log_softmax
logsumexp masked_fill masked_select matmul max mean median min moveaxis narrow nonzero norm one_hot outer permute pow
prod quantile ravel reciprocal relu repeat reshape roll round rsqrt scatter scatter_add select sigmoid sign silu sin
softmax sort split sqrt square squeeze stddev sum swapaxes take tan tanh tile topk trace transpose tril triu trunc
unbind unflatten unsqueeze var
""".split())


@dataclass
class Parameter:
    type: str
    name: str
    default: str | None = None


@dataclass
class Function:
    name: str
    result: str
    parameters: list
    doc: str = ""


@dataclass
class Struct:
    name: str
    fields: list = field(default_factory=list)
    doc: str = ""


def split_top(text, separator=","):
    """Splits at separators outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "(<{["
        depth -= c in ")>}]"
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]] if part.strip()]


def statements(text):
    """(declaration, comment above, comment behind it) of namespace braid, in order; bodies are left out."""
    above, code, behind, depth, body = [], "", [], 0, 0
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            continue
        match = re.match(r'((?:[^"/]|"[^"]*"|/(?!/))*)(?://(.*))?$', line)
        source, comment = match.group(1), match.group(2)
        if not source.strip():
            if comment is None:
                if not code.strip():
                    above = []
            elif not code.strip():
                above.append(comment.strip())
            continue
        for c in source:
            if depth == 1 and body == 0 and c == ";":
                yield code.strip(), above, behind + ([comment.strip()] if comment else [])
                above, code, behind = [], "", []
            elif c == "{":
                if depth == 0:
                    depth, code, above = 1, "", []
                elif body or not re.search(r"[=,(]\s*$", code):
                    body += 1
                    code += c
                else:
                    code += c
            elif c == "}":
                code += c
                if body:
                    body -= 1
                    if body == 0 and not re.match(r"\s*(struct|enum|class)\b", code):
                        yield re.sub(r"\{.*\}$", "", code, flags=re.S).strip(), above, behind
                        above, code, behind = [], "", []
                elif code.strip() == "}":
                    depth, code = 0, ""
            else:
                code += c
        code += "\n"
        if body and comment and "struct" in code:
            code += "//" + comment + "\n"
        elif comment and code.strip():
            behind.append(comment.strip())


# How a parameter of a C++ type is taken.
SIMPLE = {
    "int": "int", "int64_t": "int64_t", "double": "double", "bool": "bool", "const std::string&": "const std::string&",
    "const std::vector<Tensor>&": "const std::vector<Tensor>&",
    "const std::vector<int64_t>&": "const std::vector<int64_t>&", "std::vector<int64_t>": "const std::vector<int64_t>&",
    "const std::vector<double>&": "const std::vector<double>&", "const std::vector<Index>&": "const Indices&",
    "const std::vector<AxisPadding>&": "const std::vector<AxisPadding>&",
    "std::vector<Document>": "const std::vector<Document>&", "Axes": "const AxisList&", "const Shape&": "const Shape&",
    "const Pixels&": "const Pixels&", "Pixels": "const Pixels&", "DType": "DType", "Device": "Device",
    "RandomKey": "RandomKey",
}
# Structs of parameters that are classes in Python.
CLASSES = ("HeadMixing", "QkvSplit", "ComposeFactors", "AttentionMask", "AxisPadding", "Document", "TruncatedNormal")


def without_methods(body):
    """The members of a struct without its functions."""
    while match := re.search(r"[^;{}]*\([^;{}=]*\)\s*(const)?\s*\{", body):
        end, depth = match.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(body[end], 0)
            end += 1
        body = body[:match.start()] + body[end:]
    return body


class Api:
    """What the headers declare: functions, structs by name, values of enums by name."""

    def __init__(self):
        self.functions, self.structs, self.enums = [], {}, {}

    def read(self, path, functions=True):
        for code, above, behind in statements(open(path).read()):
            if code.startswith("struct "):
                if "{" in code:  # no declaration of one that is defined elsewhere
                    self.add_struct(code, above)
            elif code.startswith("enum "):
                name, values = re.match(r"enum class (\w+)[^{]*\{(.*)\}", re.sub(r"//[^\n]*", "", code), re.S).groups()
                self.enums[name] = [value.strip() for value in values.split(",") if value.strip()]
            elif functions:
                doc = [line for line in above if not line.startswith("--- ")]
                self.add_function(" ".join(code.split()), " ".join(doc + behind))

    def add_struct(self, code, above):
        name, base, body = re.match(r"struct (\w+)(?:\s*:\s*(\w+))?\s*\{(.*)\}", code, re.S).groups()
        body = without_methods(re.sub(r"//[^\n]*", "", body))
        fields = list(self.structs[base].fields) if base else []
        for line in split_top(body, ";"):
            if pointer := re.match(r"(const std::vector<\w+>\*) (\w+) = nullptr$", line):
                fields.append(Parameter(pointer.group(1), pointer.group(2), "{}"))
            match = re.match(r"((?:std::)?[\w:]+(?:<[^;]*?>)?)\s+(.*)$", line, re.S)
            if not match or "(" in line.split("=")[0] or line.startswith("enum") or "*" in line:
                continue
            for part in split_top(match.group(2)):
                of = re.match(r"(\w+)\s*(?:=\s*(.*))?$", part, re.S)
                fields.append(Parameter(match.group(1), of.group(1), of.group(2)))
        self.structs[name] = Struct(name, fields, " ".join(above))

    def add_function(self, code, doc):
        match = re.match(r"([\w:<>,& ]+?[&\s])(\w+)\((.*)\)$", code)
        if not match or re.match(r"(inline|template|using|namespace|class|struct)\b", code) or "operator" in code:
            return
        parameters = []
        for part in split_top(match.group(3)):
            of = re.match(r"(.*?)\s*(\w+)(?: = (.*))?$", part)
            parameters.append(Parameter(of.group(1), of.group(2), of.group(3)))
        self.functions.append(Function(match.group(2), match.group(1).strip(), parameters, doc))


class Writer:
    def __init__(self, api):
        self.api, self.cpp = api, []

    def taken(self, function, parameter):
        """(parameters of the binding as (type, name, default), argument of the call) of one parameter of an op."""
        type, name, default = parameter.type, parameter.name, parameter.default
        bare = re.sub(r"const |&", "", type)
        if bare.endswith("Options"):
            cpp, fields = [], ""
            for member in self.api.structs[bare].fields:
                of_member = Parameter(member.type, member.name, member.default or "{}")
                more, argument = self.taken(function, of_member)
                cpp += more
                fields += f"options.{member.name} = {argument}; "
            return cpp, f"[&] {{ {bare} options; {fields}return options; }}()"
        if bare == "Tensor":
            if default == "{}" or name in OPTIONAL.get(function.name, ()):
                none = "nb::none()" if default else None
                return [("const std::optional<Tensor>&", name, none)], f"{name}.value_or(Tensor())"
            return [("const Tensor&", name, None)], name
        if default and default.startswith("{"):
            default = "nb::none()" if "optional" in type else bare + default
        if bare in self.api.enums:
            return [(bare, name, default)], name
        if bare in CLASSES:
            return [(f"const {bare}&", name, default)], name
        if type.endswith(">*"):  # null: an empty list
            return [(type[:-1] + "&", name, type[6:-1] + "{}")], f"{name}.empty() ? nullptr : &{name}"
        if type not in SIMPLE:
            raise SystemExit(f"generate.py: {function.name}() takes a {type}, which has no row in SIMPLE")
        argument = {"Axes": f"Axes({name}.axes)", "const std::vector<Index>&": f"{name}.list"}.get(type, name)
        return [(SIMPLE[type], name, default)], argument

    def op(self, function):
        cpp, arguments = [], []
        for parameter in function.parameters:
            more, argument = self.taken(function, parameter)
            cpp += more
            arguments.append(argument)
        parameters = ", ".join(f"{type} {name}" for type, name, _ in cpp)
        call = f"{function.name}({', '.join(arguments)})"
        method = function.name in METHODS and cpp[0][0] == "const Tensor&"
        define = "define_both(m, " if method else "m.def("
        self.cpp.append(f'  {define}"{function.name}", []({parameters}) {{ return {call}; }}{named(cpp)}, '
                        f"nb::call_guard<Unlocked>(), {quoted(function.doc)});")

    def names(self):
        """Specialisations of Names for every enum."""
        lines = []
        for name, values in self.api.enums.items():
            rows = ", ".join(f'{{"{value}", {value}}}' for value in values)
            lines += ["template <>", f"struct braid::python::Names<braid::{name}> {{", f"  using enum braid::{name};",
                      f"  static constexpr std::pair<std::string_view, braid::{name}> values[] = {{{rows}}};", "};",
                      "template <>",
                      f"struct nanobind::detail::type_caster<braid::{name}> : EnumCaster<braid::{name}> {{}};"]
        return "\n".join(lines)

    def struct(self, struct):
        """A class that is made by keywords; tensors may be None."""
        name, parameters, sets, members = struct.name, [], "", []
        for member in struct.fields:
            of = member.name
            if member.type == "Tensor":
                parameters.append(("const std::optional<Tensor>&", of, "nb::none()"))
                sets += f"self->{of} = {of}.value_or(Tensor()); "
                members += [f'      .def_prop_rw("{of}", [](const {name}& s) {{ return handle_or_none(s.{of}); }},',
                            f"                   []({name}& s, const std::optional<Tensor>& x) "
                            f'{{ s.{of} = x.value_or(Tensor()); }}, "value"_a.none())']
            else:
                parameters.append((member.type, of, member.default))
                sets += f"self->{of} = {of}; "
                members.append(f'      .def_rw("{of}", &{name}::{of})')
        taken = ", ".join(f"{type} {of}" for type, of, _ in parameters)
        self.cpp.append("\n".join([
            f'  nb::class_<{name}>(m, "{name}", {quoted(struct.doc)})',
            f'      .def("__init__", []({name}* self, {taken}) {{ new (self) {name}(); {sets}}}{named(parameters)})',
            *members]) + ";")

    def result(self, struct):
        """A class of results, which unpacks in the order of its members."""
        name, members = struct.name, [member.name for member in struct.fields]
        values = ", ".join(f"s.{member}" for member in members)
        self.cpp.append("\n".join([
            f'  nb::class_<{name}>(m, "{name}", {quoted(struct.doc)})',
            *[f'      .def_ro("{member}", &{name}::{member})' for member in members],
            f'      .def("__len__", [](const {name}&) {{ return {len(members)}; }})',
            f'      .def("__iter__", [](const {name}& s) {{ return nb::iter(nb::make_tuple({values})); }})']) + ";")


def named(parameters):
    """The names and defaults of parameters as nanobind takes them; a word of Python gets an underscore behind it."""
    text = ""
    for _, name, default in parameters:
        word = name + "_" if keyword.iskeyword(name) else name
        text += f', "{word}"_a' + (f" = {default}" if default else "")
    return text


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main():
    include, out = sys.argv[1:3]
    api = Api()
    api.read(f"{include}/braid/tensor/attention_operands.h", functions=False)
    headers = re.findall(r'#include "(braid/autograd/[^"]+)"', open(f"{include}/braid/autograd.h").read())
    for header in ["braid/tensor/tensor.h", *headers]:
        if not re.search(r"debug|graph_|closure", header):
            api.read(f"{include}/{header}")
    functions = [function for function in api.functions if function.name not in SKIPPED]
    results = []
    for function in functions:
        result = re.sub(r"std::vector<(\w+)>", r"\1", function.result)
        if result in api.structs and result not in CLASSES and result not in results:
            results.append(result)
    structs, ops = Writer(api), Writer(api)
    for name in CLASSES:
        structs.struct(api.structs[name])
    for name in results:
        structs.result(api.structs[name])
    for function in functions:
        ops.op(function)
    made = "// Made by generate.py from the headers of autograd/ and tensor.h.\n"
    parts = 4
    share = -(-len(ops.cpp) // parts)
    bodies = {"structs": structs.cpp, **{f"ops_{i}": ops.cpp[i * share:(i + 1) * share] for i in range(parts)}}
    files = {"names.h": made + "#pragma once\n" + ops.names() + "\n"}
    for name, body in bodies.items():
        files[f"{name}.cpp"] = (made + '#include "apps/python/bindings.h"\n\nnamespace braid::python {\n\n'
                                f"void bind_{name}(nb::module_& m) {{\n" + "\n".join(body) +
                                "\n}\n\n}  // namespace braid::python\n")
    for name, text in files.items():
        with open(f"{out}/{name}", "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
