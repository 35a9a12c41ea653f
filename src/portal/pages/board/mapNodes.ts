import type { QueueView, TopologyView } from "../../api/TaskTypes.ts"
import type { Drawn, DrawnEdge } from "../../shared/graph/drawn.ts"
import { meaningOfQueue } from "../../shared/tasks/meanings.ts"
import { countedText } from "../../shared/words/format.ts"

type Live = TopologyView["queues"][number]

const liveWords: Readonly<Record<Live["live"], string>> = {
  same: "declared as planned",
  missing: "missing on the broker",
  differs: "differs on the broker",
  unknown: "the broker does not tell"
}

/** Exchanges, the queues that they fill, and the stages that work on those. */
export const mapNodes = (topology: TopologyView, queues: ReadonlyArray<QueueView>) => {
  const board = new Map(queues.map((view) => [view.queue, view]))
  const stageOf = new Map(topology.stages.map((stage) => [stage.name, stage]))
  const nodes: ReadonlyArray<Drawn> = [
    ...topology.exchanges.map(
      ({ differs, kind, live, name }): Drawn => ({
        id: `exchange ${name}`,
        title: name,
        lines: [`${kind} exchange`, differs ?? liveWords[live]],
        meaning: live === "same" ? "idle" : live === "unknown" ? "warning" : "bad",
        parts: []
      })
    ),
    ...topology.queues.map((queue): Drawn => queueNode(queue, board.get(queue.name))),
    ...topology.stages.map(
      ({ name }): Drawn => ({ id: `stage ${name}`, title: name, lines: ["stage"], meaning: "working", parts: [] })
    )
  ]
  const bindings = Map.groupBy(topology.bindings, ({ exchange, queue }) => JSON.stringify([exchange, queue]))
  const edges: ReadonlyArray<DrawnEdge> = [
    ...[...bindings].flatMap(([id, [first, ...others]]) =>
      first === undefined
        ? []
        : [
            {
              id,
              source: `exchange ${first.exchange}`,
              target: `queue ${first.queue}`,
              label: [first.routing_key, ...(others.length > 0 ? [`and ${others.length} more`] : [])].join(" ").trim(),
              isDashed: false
            }
          ]
    ),
    ...topology.stages.flatMap(({ name, next, queue }) => [
      { id: `works ${name}`, source: `queue ${queue}`, target: `stage ${name}`, label: "", isDashed: false },
      ...next.map((target) => ({
        id: `next ${name} ${target}`,
        source: `stage ${name}`,
        target: `queue ${stageOf.get(target)?.queue ?? ""}`,
        label: "next",
        isDashed: true
      }))
    ])
  ]
  return { nodes, edges }
}

const queueNode = ({ differs, live, name }: Live, view: QueueView | undefined): Drawn => ({
  id: `queue ${name}`,
  title: name,
  lines: [
    view === undefined
      ? "queue"
      : `${view.state}: ${view.ready ?? "?"} ready, ${view.consumers === null ? "? consumers" : countedText(view.consumers, "consumer")}`,
    differs ?? liveWords[live]
  ],
  meaning: live === "missing" || live === "differs" ? "bad" : view === undefined ? "idle" : meaningOfQueue[view.state],
  parts: []
})
