import cluster from "node:cluster"
import { Option, Schema } from "effect"
import type { Environment } from "../environment/Variables.ts"

/** The place of a process among those that share the proxy listener. */
export interface WorkerIdentity {
  /** From 1 to `of`. A process that replaces another one has its number. */
  readonly number: number
  readonly of: number
  /** The ports of the supervisor's listeners, which the gateway must not call on behalf of a client. */
  readonly supervisorPorts: ReadonlyArray<number>
}

const Json = Schema.fromJsonString(
  Schema.Struct({ number: Schema.Int, of: Schema.Int, supervisorPorts: Schema.Array(Schema.Int) })
)

const variable = "SVC_WORKER"

/** The variables of a worker's environment. */
export const toEnvironment = (identity: WorkerIdentity): Environment => ({
  [variable]: Schema.encodeSync(Json)(identity)
})

/** Returns `none` in a process that no supervisor started, even if another program runs it in a cluster. */
export const ofProcess = (environment: Environment): Option.Option<WorkerIdentity> =>
  cluster.isWorker ? Schema.decodeUnknownOption(Json)(environment[variable]) : Option.none()
