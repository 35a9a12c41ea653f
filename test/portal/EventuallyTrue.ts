import { setTimeout } from "node:timers/promises"

/** Waits until `holds` is true. */
export const eventuallyTrue = async (holds: () => Promise<boolean>, patienceMs = 30_000): Promise<void> => {
  const until = Date.now() + patienceMs
  while (!(await holds())) {
    if (Date.now() > until) throw new Error(`it did not come true within ${patienceMs} ms`)
    await setTimeout(50)
  }
}
