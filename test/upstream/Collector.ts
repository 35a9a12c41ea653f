export { type Collector, collector } from "../../layers/testing/contract/upstream/Collector.ts"
