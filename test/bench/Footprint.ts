import { readdirSync, readFileSync, readlinkSync } from "node:fs"

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

/** The same with all processes below it that are still there. */
export const familyCpuMicros = (pid: number): number =>
  childrenOf(pid).reduce((sum, child) => sum + familyCpuMicros(child), cpuMicros(pid))

/** The resident memory of a process and of all processes below it. Pages that they share count for each. */
export const familyResidentMiB = (pid: number): number =>
  childrenOf(pid).reduce((sum, child) => sum + familyResidentMiB(child), residentMiB(pid))

const childrenOf = (pid: number): ReadonlyArray<number> =>
  readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number)
  )

/** Who listens on a port of this machine, as far as we may see it. */
export const listener = (port: number): number | undefined => {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`
  const sockets = ["tcp", "tcp6"].flatMap((table) =>
    readFileSync(`/proc/net/${table}`, "utf8")
      .split("\n")
      .flatMap((line) => {
        const fields = line.trim().split(/ +/)
        return fields[1]?.endsWith(suffix) && fields[3] === listening ? [`socket:[${fields[9]}]`] : []
      })
  )
  return readdirSync("/proc")
    .filter(isPid)
    .map(Number)
    .find((pid) => openFiles(pid).some((file) => sockets.includes(file)))
}

const listening = "0A"

const isPid = (name: string): boolean => /^\d+$/.test(name)

/** None of a process that is another user's, or just gone. */
const openFiles = (pid: number): ReadonlyArray<string> => {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
  } catch {
    return []
  }
}
