"""Splits the function of the generated model that runs the logic of clocks into its parts.

    parts.py <folder of the generated model>

Verilator's `eval_nba` is a list of parts, each behind a test of the clocks that it belongs to. Most
tests fail, and the same ones cycle after cycle. So each part becomes a function in a table beside
its clocks, and device.cpp keeps a list of those to run.
"""

import re
import sys
from pathlib import Path

MODEL = "Vaxon_model___024root"
FUNCTION = re.compile(rf"^void {MODEL}___eval_nba\({MODEL}\* vlSelf\) \{{\n(.*?)^\}}\n", re.M | re.S)
TEST = r"    if \(\((\w+) & vlSelfRef\.__VnbaTriggered\[0U\]\)\) \{\n"
PART = re.compile(TEST + r"(.*?)^    \}\n", re.M | re.S)
LOCAL = re.compile(r"^    (\w+/\*[\d:]+\*/ (\w+);)\n    \2 = 0;\n", re.M)

# `eval` calls the function once, before the first cycle.
TABLE = f"""#include "parts.h"
{{functions}}
const Part PARTS[] = {{{{
{{table}}    {{{{0, nullptr}}}},
}}}};
void {MODEL}___eval_nba({MODEL}* vlSelf) {{{{
    for (const Part* part = PARTS; part->run != nullptr; part++)
        if (part->clocks & vlSelf->__VnbaTriggered[0U]) part->run(vlSelf);
}}}}
"""


def main():
    """Rewrites the file that has the function."""
    for path in sorted(Path(sys.argv[1]).glob(f"{MODEL}__*.cpp")):
        text = path.read_text()
        found = FUNCTION.search(text)
        if found:
            path.write_text(text[: found.start()] + split(found[1]) + text[found.end() :])
            return
    sys.exit(f"no {MODEL}___eval_nba in {sys.argv[1]}: another version of Verilator?")


def split(body):
    """The table of the parts of a function, and a function for each."""
    parts = PART.findall(body)
    variables = {name: declaration for declaration, name in LOCAL.findall(body)}
    rest = LOCAL.sub("", PART.sub("", body))
    lines = [line for line in rest.splitlines() if not line.strip().startswith(("//", "VL_DEBUG_IF"))]
    # What is left are the pointer to the symbols and the reference to the state.
    if not parts or len(lines) != 2:
        sys.exit(f"{MODEL}___eval_nba is of an unknown form: {lines}")
    functions, table = "", ""
    for number, (clocks, code) in enumerate(parts):
        words = set(re.findall(r"\w+", code))
        declared = "".join(f"    {text}\n" for name, text in variables.items() if name in words)
        head = "\n".join(lines)
        functions += f"static void part_{number}({MODEL}* vlSelf) {{\n{head}\n{declared}{code}}}\n"
        table += f"    {{{clocks}, part_{number}}},\n"
    return TABLE.format(functions=functions, table=table)


if __name__ == "__main__":
    main()
