import type { Drawn, DrawnEdge } from "../../../../shared/graph/drawn.ts"
import { countText } from "../../../../shared/words/format.ts"

/** A longer run is drawn by its ends. */
export const mostInRun = 12
const keptAtEachEnd = 4

interface Graph {
  readonly nodes: ReadonlyArray<Drawn>
  readonly edges: ReadonlyArray<DrawnEdge>
}

const alike = (one: Drawn, other: Drawn): boolean => one.meaning === other.meaning && one.lines[0] === other.lines[0]

/** Folds the middle of long runs: nodes that look alike and follow each other, such as thousands of attempts. */
export const foldRuns = ({ edges, nodes }: Graph): Graph => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const entering = Map.groupBy(edges, ({ target }) => target)
  const leaving = Map.groupBy(edges, ({ source }) => source)
  const isLink = ({ id }: Drawn) => entering.get(id)?.length === 1 && leaving.get(id)?.length === 1
  const neighbour = (node: Drawn, id: string | undefined): Drawn | undefined => {
    const found = id === undefined ? undefined : byId.get(id)
    return found !== undefined && isLink(found) && alike(node, found) ? found : undefined
  }
  const before = (node: Drawn) => neighbour(node, entering.get(node.id)?.[0]?.source)
  const after = (node: Drawn) => neighbour(node, leaving.get(node.id)?.[0]?.target)

  const foldedInto = new Map<string, Drawn>()
  for (const first of nodes) {
    if (!isLink(first) || before(first) !== undefined) continue
    const run: Array<Drawn> = []
    for (let node: Drawn | undefined = first; node !== undefined; node = after(node)) run.push(node)
    if (run.length <= mostInRun) continue
    const middle = run.slice(keptAtEachEnd, -keptAtEachEnd)
    const folded = runOf(middle)
    for (const { id } of middle) foldedInto.set(id, folded)
  }
  if (foldedInto.size === 0) return { nodes, edges }
  const drawn = (id: string) => foldedInto.get(id)?.id ?? id
  return {
    nodes: [...new Set(nodes.map((node) => foldedInto.get(node.id) ?? node))],
    edges: edges
      .map((edge) => ({ ...edge, source: drawn(edge.source), target: drawn(edge.target) }))
      .filter(({ source, target }) => source !== target)
  }
}

const runOf = (middle: ReadonlyArray<Drawn>): Drawn => ({
  id: `run ${middle[0]?.id}`,
  title: `${countText(middle.length)} more like these`,
  lines: [`${middle[0]?.title} to ${middle.at(-1)?.title}`],
  meaning: middle[0]?.meaning ?? "idle",
  parts: middle.flatMap(({ id, parts }) => [id, ...parts])
})
