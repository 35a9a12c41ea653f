import { store } from "./ApiFiles.ts"
import { reports } from "./ApiReport.ts"

store(reports())
