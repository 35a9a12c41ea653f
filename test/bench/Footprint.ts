import { readFileSync } from "node:fs"

/** What a process takes of the machine, from Linux' `/proc`. */

const statusMiB = (pid: number, field: string): number => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? Number.NaN) / 1024
}

export const residentMiB = (pid: number): number => statusMiB(pid, "VmRSS")

export const peakMiB = (pid: number): number => statusMiB(pid, "VmHWM")

/** A clock tick is 10 ms on every Linux that Node runs on. */
const microsPerTick = 10_000

/** Processor time of all threads since the start. Half as noisy as rates are on a machine that others use, too. */
export const cpuMicros = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  // the command, which may hold blanks, ends with the last parenthesis
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) * microsPerTick
}
