import { defineTasks } from "svc-runtime"
import { topology, worker } from "./WorkerExample.ts"

export default defineTasks({
  topologies: [topology],
  workers: worker,
  terminalStatuses: ["sent", "failed"],
  prefixes: { statuses: "mail", deadLetters: "mail" }
})
