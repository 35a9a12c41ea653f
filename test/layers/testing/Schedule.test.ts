import { assert, it } from "@effect/vitest"
import { faultsAt, type Operation, sentenceOf } from "../../../layers/testing/Schedule.ts"

const operations: ReadonlyArray<Pick<Operation, "kind" | "label">> = [
  { kind: "delivery", label: "the delivery of task o1" },
  { kind: "publish", label: "the publish of the status “sold” of task o1" },
  { kind: "settlement", label: "the acknowledgement of task o1" },
  { kind: "redis", label: "the Redis command SET o1" },
  { kind: "step", label: "the step “charge o1”" }
]

it("each fault is a sentence", () => {
  const sentences = operations.map((operation) =>
    faultsAt[operation.kind].map((what) =>
      sentenceOf(what, { ...operation, number: 3, worker: "worker 2", startedAt: 0 }, "5s")
    )
  )
  assert.deepStrictEqual(sentences, [
    [
      "Worker 2 crashes before the delivery of task o1 (operation 3).",
      "Worker 2 loses its connection to the broker before the delivery of task o1 (operation 3).",
      "The queue holds task o1 twice (operation 3).",
      "Task o1 moves to the end of its queue (operation 3)."
    ],
    [
      "Worker 2 crashes before the publish of the status “sold” of task o1 (operation 3).",
      "Worker 2 crashes after the publish of the status “sold” of task o1 (operation 3).",
      "Worker 2 loses its connection to the broker before the publish of the status “sold” of task o1 (operation 3).",
      "Worker 2 loses its connection to the broker after the publish of the status “sold” of task o1, before the confirm (operation 3).",
      "The broker refuses the publish of the status “sold” of task o1 (operation 3).",
      "The publish of the status “sold” of task o1 is carried out, but its answer is lost (operation 3).",
      "The publish of the status “sold” of task o1 begins 5s late (operation 3).",
      "The result of the publish of the status “sold” of task o1 arrives 5s late (operation 3)."
    ],
    [
      "Worker 2 crashes before the acknowledgement of task o1 (operation 3).",
      "Worker 2 crashes after the acknowledgement of task o1 (operation 3).",
      "Worker 2 loses its connection to the broker before the acknowledgement of task o1 (operation 3).",
      "Worker 2 loses its connection to the broker after the acknowledgement of task o1 (operation 3)."
    ],
    [
      "Worker 2 crashes before the Redis command SET o1 (operation 3).",
      "Worker 2 crashes after the Redis command SET o1 (operation 3).",
      "Worker 2 loses its connection to the broker before the Redis command SET o1 (operation 3).",
      "Worker 2 loses its connection to the broker after the Redis command SET o1 (operation 3).",
      "The Redis command SET o1 fails before it is carried out (operation 3).",
      "The Redis command SET o1 is carried out, but its answer is lost (operation 3).",
      "The Redis command SET o1 begins 5s late (operation 3).",
      "The result of the Redis command SET o1 arrives 5s late (operation 3)."
    ],
    [
      "Worker 2 crashes before the step “charge o1” (operation 3).",
      "Worker 2 crashes after the step “charge o1” (operation 3).",
      "Worker 2 loses its connection to the broker before the step “charge o1” (operation 3).",
      "Worker 2 loses its connection to the broker after the step “charge o1” (operation 3).",
      "The step “charge o1” fails before it is carried out (operation 3).",
      "The step “charge o1” is carried out and then fails (operation 3).",
      "The step “charge o1” begins 5s late (operation 3).",
      "The result of the step “charge o1” arrives 5s late (operation 3).",
      "The step “charge o1” never returns (operation 3)."
    ]
  ])
})
