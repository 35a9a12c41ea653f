export { eventually } from "../layers/testing/contract/law/Eventually.ts"
