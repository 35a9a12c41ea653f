import type { Queue } from "../../src/services/Broker.ts"
import type { Fault, FaultKind, Operation, OperationKind, Schedule } from "./Schedule.ts"

/** A run with more operations never settles. The limit ends runs in which no virtual time passes. */
export const maxOperations = 5_000

/** Numbers the operations of a run and decides which fault strikes which operation. */
export class History {
  readonly operations: Array<Operation> = []
  /** The faults that have struck, in order. */
  readonly struck: Array<{ readonly fault: Fault; readonly operation: Operation }> = []
  /** All queues that the worker and the kit have declared. */
  readonly queues = new Map<string, Queue>()
  readonly consumedQueues = new Set<string>()
  /** Increases with everything that happens. */
  activity = 0
  isOver = false
  readonly #now: () => number
  readonly #faults: Set<Fault>

  constructor({ faults }: Schedule, now: () => number) {
    this.#now = now
    this.#faults = new Set(faults)
  }

  get isExceeded(): boolean {
    return this.operations.length >= maxOperations
  }

  begin(worker: string, kind: OperationKind, label: string): Operation {
    this.activity++
    const operation = { number: this.operations.length + 1, kind, label, worker, startedAt: this.#now() }
    this.operations.push(operation)
    return operation
  }

  /** Returns whether the schedule has this fault here. A fault strikes once. */
  strikes(operation: Operation, what: FaultKind): boolean {
    for (const fault of this.#faults) {
      if (fault.at !== operation.number || fault.what !== what) continue
      this.#faults.delete(fault)
      this.activity++
      this.struck.push({ fault, operation })
      return true
    }
    return false
  }
}
