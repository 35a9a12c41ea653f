/** A text of about so many characters that some reader could take long for. */
export interface Shape {
  readonly name: string
  readonly of: (length: number) => string
}

const run = (unit: string, end = ""): Shape => ({
  name: JSON.stringify(`${unit}…${end}`),
  of: (length) => unit.repeat(Math.ceil(length / unit.length)) + end
})

/** Words that are all different: what compares each with each is quadratic on them alone. */
const different = (before: string, after: string): Shape => ({
  name: JSON.stringify(`${before}(a different word)${after}…`),
  of: (length) => {
    const word = (at: number) => before + at.toString(36) + after
    const sample = word(1_000).length
    return Array.from({ length: Math.ceil(length / sample) }, (_, at) => word(at)).join("")
  }
})

/** The last character is one that hardly any pattern ends with: what backtracks begins to where the end does not fit. */
export const texts: ReadonlyArray<Shape> = [
  ...[
    " ",
    "\t",
    '"',
    "'",
    "\\",
    "&",
    "=",
    "%",
    "+",
    ";",
    ",",
    ":",
    ".",
    "/",
    "-",
    "_",
    "@",
    "(",
    "<",
    "[",
    "{",
    "}",
    "]"
  ],
  ...["\r\n", "\n", "\r", "\n\n", "\u200b", "\u00e9", "\u00a0", "0", "a", "A", "~", "#", "?", "*", "`", "$"],
  ...[
    '\\"',
    '"\\',
    "a ",
    " a",
    "a&",
    "a=&",
    "%61",
    "%zz",
    "a.",
    "a,",
    "a;",
    "a@",
    "a@b.",
    "1-",
    "1 ",
    "+1 ",
    "(5)",
    "//"
  ],
  ...[
    "<a",
    '"a":',
    '{"a":',
    "[1,",
    "[],",
    "{},",
    '"a",',
    "charset",
    "charset ",
    "data:",
    "data: {}\n",
    '"usage":{',
    "--b"
  ],
  ...[
    "\r\n--b",
    "name=",
    '; a="',
    "a=b; ",
    "[EMAIL_1]",
    "https://",
    "*.",
    "#.",
    "é@",
    "x1",
    "-1",
    "null,",
    ": \n",
    "$ref"
  ]
]
  .map((unit) => run(unit, "\u0001!"))
  .concat(["a", "0", " ", "_", "/", "&", "[", ":\n"].map((unit) => run(unit)))
  .concat(
    [",", "&", "=1&", ".", "/", " ", "\n", "; ", ":"].map((after) => different("", after)),
    different('"', '":1,')
  )

/** Valid JSON: what a reader has to deal with behind the parser. */
export const documents: ReadonlyArray<Shape> = [
  ...texts.map(({ name, of }) => ({
    name: `a string of ${name}`,
    of: (length: number) => JSON.stringify({ a: of(length) })
  })),
  ...["1", '""', '"ab"', "[]", "{}", "null", '{"a":1}', '{"b":"x","a":"y"}', '[["a"]]', '{"id":"a","type":"b"}'].map(
    (item) => ({
      name: `a list of ${item}`,
      of: (length: number) =>
        `{"a":[${Array.from({ length: Math.ceil(length / (item.length + 1)) }, () => item).join()}]}`
    })
  ),
  ...["1", '"x"', '{"y":"z"}', "[]"].map((value) => ({
    name: `members that are ${value}`,
    of: (length: number) =>
      `{${Array.from({ length: Math.ceil(length / (value.length + 9)) }, (_, at) => `"m${at.toString(36)}":${value}`).join()}}`
  })),
  {
    name: "lists in lists, as deep as one may",
    of: (length) =>
      `[${Array.from({ length: Math.ceil(length / 400) }, () => `${"[".repeat(200)}"a"${"]".repeat(200)}`).join()}]`
  },
  {
    name: "objects in objects, with text on each level",
    of: (length) => {
      const nested = `${'{"b":"x","a":'.repeat(200)}"y"${"}".repeat(200)}`
      return `{"a":[${Array.from({ length: Math.ceil(length / nested.length) }, () => nested).join()}]}`
    }
  }
]

/** JSON that nests as deeply as it is long, with a text for each level. Events of streams have no limit of depth. */
export const nested: ReadonlyArray<Shape> = [
  ['{"a":[', "]}"],
  ['[{"a":', "}]"],
  ['{"choices":[{"a":', "}]}"],
  ['{"a":', "}"]
].map(([open = "", close = ""]) => ({
  name: `${open}…${close}`,
  of: (length: number) => {
    const depth = Math.ceil(length / (open.length + close.length + 8))
    return `${open.repeat(depth)}[${Array.from({ length: depth }, (_, at) => `"x${at % 1000} y"`).join()}]${close.repeat(depth)}`
  }
}))
