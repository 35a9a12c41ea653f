import type { ExecutionGraph } from "./ExecutionGraph.ts"

/**
 * Renders the graph as Mermaid `flowchart LR` text. Nodes show their label, kind and time. Edges show their kind.
 * Labels are escaped and have at most 120 characters. By default, Mermaid viewers show at most 500 edges and 50,000
 * characters.
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

/** Returns a unique identifier for each node, of characters that Mermaid accepts. */
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

const identifierOf = (id: string): string => {
  const word = id.replace(/[^0-9A-Za-z_]/g, "_")
  let [start, end] = [0, word.length]
  while (word.charAt(start) === "_") start++
  while (end > start && word.charAt(end - 1) === "_") end--
  return word.slice(start, end)
}

const maxLabelLength = 120

/**
 * Replaces special characters with entities. If a label contains entities or `:fa-`, its colons are replaced too.
 * Mermaid would read `style:…#…;` as a statement and `fa:fa-…` as an icon.
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

const plainLabel = /^\w[\w \-.,/]*$/

const safeCharacter = /[\w \-.,/+=?!'@:\u0080-\u{10ffff}]/u

/** Removes `ﬂ` and `¶ß`, because Mermaid uses `ﬂ°` and `¶ß` internally in place of entities. */
const onOneLine = (label: string): string =>
  label
    .toWellFormed()
    .replace(/[\p{Cc}\s]+/gu, " ")
    .replaceAll("ﬂ", "fl")
    .replaceAll("¶ß", "¶ ß")
    .trim()
