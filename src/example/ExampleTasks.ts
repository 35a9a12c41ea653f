import { Layer } from "effect"
import { defineTasks } from "../tasks/Tasks.ts"
import * as ExamplePublisher from "./ExamplePublisher.ts"
import { readTopology, scanTopology, summaryTopology } from "./Topologies.ts"
import * as Workers from "./Workers.ts"

/** The example's tasks read, scan and summarise books. The flag `--example` runs them. */
export default defineTasks({
  topologies: [readTopology, scanTopology, summaryTopology],
  workers: Layer.merge(Workers.layer, ExamplePublisher.layer),
  otherQueues: ["svc.example.books.0", "svc.example.books.1"]
})
