/** The schema that a payload was compared with. */
export interface ReportedSchema {
  /** `null` if the schema applies to all types of the queue, or to an action of a workflow. */
  readonly task_type: string | null
  /** The action of a workflow. `null` for tasks. */
  readonly action: string | null
  readonly worker_version: string
  readonly reported_at: string
}

/** The result of comparing a payload with the schema of its handler. */
export interface PayloadFit {
  readonly schema: ReportedSchema | null
  /** Why there is no `schema`: a sentence. */
  readonly not_compared: string | null
  /** The members that do not fit. At most 50. */
  readonly fields: ReadonlyArray<{ readonly field: string; readonly message: string }>
  readonly more_fields: boolean
  /** The parts of the schema that were not checked, with the members that they are about. At most 10. */
  readonly not_checked: ReadonlyArray<string>
}

export const notCompared = (why: string): PayloadFit => ({
  schema: null,
  not_compared: why,
  fields: [],
  more_fields: false,
  not_checked: []
})
