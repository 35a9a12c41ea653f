export * from "../../layers/testing/contract/upstream/SimulatorServer.ts"
