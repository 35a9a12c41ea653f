import { layout as dagre, graphlib } from "@dagrejs/dagre"
import type { Drawn, DrawnEdge } from "./drawn.ts"

export const size = { width: 210, height: 74 }
const gap = { across: 26, along: 120 }

/** The layout in layers takes longer than linear time, so larger graphs get simple columns. */
const mostLayered = 400

export type Places = ReadonlyMap<string, { readonly x: number; readonly y: number }>

/** Where each node stands, from left to right. */
export const placesOf = (nodes: ReadonlyArray<Drawn>, edges: ReadonlyArray<DrawnEdge>): Places =>
  nodes.length > mostLayered ? inColumns(nodes, edges) : inLayers(nodes, edges)

const inLayers = (nodes: ReadonlyArray<Drawn>, edges: ReadonlyArray<DrawnEdge>): Places => {
  const graph = new graphlib.Graph()
  graph.setGraph({ rankdir: "LR", nodesep: gap.across, ranksep: gap.along })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const { id } of nodes) graph.setNode(id, { ...size })
  for (const { source, target } of edges) graph.setEdge(source, target)
  dagre(graph)
  return new Map(
    nodes.map(({ id }) => {
      const { x = 0, y = 0 } = graph.node(id)
      return [id, { x: x - size.width / 2, y: y - size.height / 2 }]
    })
  )
}

/** The column of a node is its distance from where the edges begin. A column that is too long goes on beside itself. */
const inColumns = (nodes: ReadonlyArray<Drawn>, edges: ReadonlyArray<DrawnEdge>): Places => {
  const targets = Map.groupBy(edges, ({ source }) => source)
  const entered = new Set(edges.map(({ target }) => target))
  const column = new Map<string, number>()
  let wave = nodes.filter(({ id }) => !entered.has(id)).map(({ id }) => id)
  for (const id of wave) column.set(id, 0)
  for (let number = 1; wave.length > 0; number++) {
    const following: Array<string> = []
    for (const id of wave)
      for (const { target } of targets.get(id) ?? [])
        if (!column.has(target)) {
          column.set(target, number)
          following.push(target)
        }
    wave = following
  }
  const columns = Map.groupBy(nodes, ({ id }) => column.get(id) ?? 0)
  const places = new Map<string, { readonly x: number; readonly y: number }>()
  let x = 0
  for (const [, members] of [...columns].sort(([one], [other]) => one - other)) {
    const high = Math.max(12, Math.ceil(Math.sqrt(members.length) * 2))
    for (const [place, { id }] of members.entries()) {
      const beside = Math.floor(place / high)
      places.set(id, { x: x + beside * (size.width + gap.across), y: (place % high) * (size.height + gap.across) })
    }
    x += Math.ceil(members.length / high) * (size.width + gap.across) + gap.along
  }
  return places
}
