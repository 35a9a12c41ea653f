import type { ExecutionGraph } from "./ExecutionGraph.ts"

/**
 * The graph as Mermaid `flowchart LR` text: each node with its label, kind and, where it has one, timestamp; each edge
 * with its kind. Whatever a label holds, the text is valid, and shows the label: on one line, and shortened where it has
 * more than 120 characters. Viewers have limits of their own, by default 500 edges and 50,000 characters.
 */
export const executionGraphMermaid = ({ edges, nodes }: Pick<ExecutionGraph, "nodes" | "edges">): string => {
  const ids = identifiers(nodes.map(({ id }) => id))
  return [
    "flowchart LR",
    ...nodes.map(({ id, kind, label, timestamp }) => {
      const parts = [escapeLabel(label || id), kind, ...(timestamp === null ? [] : [timestamp])]
      return `    ${ids.get(id)}["${parts.join("\\n")}"]`
    }),
    ...edges.flatMap(({ kind, source, target }) => {
      const [from, to] = [ids.get(source), ids.get(target)]
      return from === undefined || to === undefined ? [] : [`    ${from} -->|${kind}| ${to}`]
    })
  ].join("\n")
}

/** Of what Mermaid takes, and different where that made them equal. */
const identifiers = (ids: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const taken = new Set<string>()
  const next = new Map<string, number>()
  return new Map(
    ids.map((id) => {
      const plain = `node_${identifierOf(id) || "node"}`
      let own = plain
      for (let number = next.get(plain) ?? 2; taken.has(own); number++) {
        own = `${plain}_${number}`
        next.set(plain, number + 1)
      }
      taken.add(own)
      return [id, own]
    })
  )
}

/** With `_` for what Mermaid does not take, but none around it. */
const identifierOf = (id: string): string => {
  const word = id.replace(/[^0-9A-Za-z_]/g, "_")
  let [start, end] = [0, word.length]
  while (word.charAt(start) === "_") start++
  while (end > start && word.charAt(end - 1) === "_") end--
  return word.slice(start, end)
}

const maxLabelLength = 120

/**
 * What is not certain to mean nothing to Mermaid becomes an entity. Around entities colons become some too: Mermaid takes
 * `style:…#…;` for a statement wherever it stands, and `fa:fa-…` for an icon.
 */
const escapeLabel = (label: string): string => {
  if (label.length <= maxLabelLength && plainLabel.test(label)) return label
  const line = [...onOneLine(label)]
  const shown = line.length > maxLabelLength ? [...line.slice(0, maxLabelLength - 1), "…"] : line
  const special = shown.some((character) => !safeCharacter.test(character)) || label.includes(":fa-")
  return shown
    .map((character) =>
      safeCharacter.test(character) && !(special && character === ":") ? character : `#${character.codePointAt(0)};`
    )
    .join("")
}

/** Almost every label. */
const plainLabel = /^\w[\w \-.,/]*$/

const safeCharacter = /[\w \-.,/+=?!'@:\u0080-\u{10ffff}]/u

/** Without `ﬂ°` and `¶ß`, with which Mermaid writes entities down until it draws them. */
const onOneLine = (label: string): string =>
  label
    .toWellFormed()
    .replace(/[\p{Cc}\s]+/gu, " ")
    .replaceAll("ﬂ", "fl")
    .replaceAll("¶ß", "¶ ß")
    .trim()
