import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

setFlagsFromString("--expose-gc")
const collectGarbage: () => void = runInNewContext("gc")

/** What this process can reach, in MiB: on the heap, and beside it. */
export const reachableMiB = (): number => {
  // a buffer's memory is given back in the collection after its object's
  collectGarbage()
  collectGarbage()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return (arrayBuffers + heapUsed) / 1_048_576
}

/** How much more this process holds after `use`, in MiB. */
export const heldMiB = (use: () => void): number => {
  const before = reachableMiB()
  use()
  return reachableMiB() - before
}
