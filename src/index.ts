/**
 * svc-runtime: a governed gateway for model APIs, and task messaging with statuses, replay and execution graphs.
 *
 * Each area is an entry of its own, so that a program loads only what it uses:
 *
 * - `svc-runtime/messaging`: topologies, publishers and workers
 * - `svc-runtime/status`: stored statuses, event streams, dead letters and replay
 * - `svc-runtime/graph`: observations and execution graphs
 * - `svc-runtime/gateway`: the gateway as a Layer
 * - `svc-runtime/control`: the typed client of the operator API
 * - `svc-runtime/services`: the doors that these areas need
 * - `svc-runtime/layers/<Variant>`: implementations of the doors, such as `svc-runtime/layers/BrokerAmqp`
 *
 * This entry has what a tasks module needs beside `svc-runtime/messaging`.
 */
export { defineTasks, type StorePrefixes, type Tasks, TasksError, type TasksOptions } from "./tasks/Tasks.ts"
