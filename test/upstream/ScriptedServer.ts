export * from "../../layers/testing/contract/upstream/ScriptedServer.ts"
