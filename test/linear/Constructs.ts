import { globSync, readFileSync } from "node:fs"

/** What takes text apart, by names that a line of code has. Regular expressions are found apart. */
const takesApart =
  /\bJSON\.parse\b|\bfromJsonString\b|\bURLSearchParams\b|\bdecodeURI(?:Component)?\(|\bunescape\(|\bTextDecoder\b|\bnew RegExp\b|\.(?:split|matchAll|charCodeAt)\(|\.(?:indexOf|lastIndexOf)\([^()]*,/

/** The source files that take text apart by something whose time depends on the text. */
export const filesThatRead = (): ReadonlyArray<string> =>
  globSync("{src,layers}/**/*.ts")
    .filter((file) => !file.startsWith("src/portal/") && reads(readFileSync(file, "utf8")))
    .sort()

export const reads = (source: string): boolean => {
  const { code, patterns } = partsOf(source)
  return takesApart.test(code) || patterns.some(isUnbounded)
}

/** Without a `*`, a `+` or an open `{n,}` a pattern looks at a fixed number of characters from each place. */
const isUnbounded = (pattern: string): boolean =>
  /[*+]|\{\d+,\}/.test(pattern.replaceAll(/\\./g, "a").replaceAll(/\[[^\]]*\]/g, "a"))

/** The code without comments, strings and imports; and its regular expressions. */
const partsOf = (source: string): { readonly code: string; readonly patterns: ReadonlyArray<string> } => {
  const patterns: Array<string> = []
  let code = ""
  for (let at = 0; at < source.length; ) {
    token.lastIndex = at
    const [text = source.charAt(at)] = token.exec(source) ?? []
    const isPattern = text === "/" && beforePattern.test(code.slice(-40))
    if (isPattern) {
      literal.lastIndex = at
      const [pattern = "/"] = literal.exec(source) ?? []
      patterns.push(pattern)
      code += "/pattern/"
      at += pattern.length
      continue
    }
    if (text.length === 1) code += text
    at += text.length
  }
  return { code, patterns }
}

const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[\s\S])*`|\/|[^/"'`]/y
const beforePattern = /(?:^|[([{,;=:!&|?>])\s*$|\breturn\s*$/
const literal = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/y
