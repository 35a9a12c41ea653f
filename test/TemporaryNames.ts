export { layer, TemporaryNames } from "../layers/testing/contract/broker/TemporaryNames.ts"
