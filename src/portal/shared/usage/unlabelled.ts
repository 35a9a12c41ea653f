/** A group of the requests that have no label of a kind. */
export interface Unlabelled {
  readonly label: string
  readonly reason: string
  /** The search that lists the same requests one by one. */
  readonly search: Readonly<Record<string, string>>
}

const without = (label: string, what: string): Unlabelled => ({
  label,
  reason: `These are the requests ${what}. They cannot be told apart from the others by a filter.`,
  search: {}
})

/** The names that the API gives to what has no label, by the group of a breakdown or the split of a series. */
const unlabelled: Readonly<Record<string, Readonly<Record<string, Unlabelled>>>> = {
  project: { individual: without("keys without a project", "of keys that belong to no project") },
  team: { none: without("keys without a team", "of keys that were in no team at that time") },
  model: {
    unknown: {
      label: "no model (unknown)",
      reason: "These requests named no model, such as lists of models, or were refused before their model was read.",
      search: {}
    },
    other: {
      label: "refused or unknown names (other)",
      reason:
        "These requests named models, and no upstream answered them: most were refused, or the name was wrong. Clients may send any name, so that the sums do not tell them apart. The list of requests does.",
      search: { status: "failure" }
    }
  },
  service: { none: without("requests without a service", "that were not for a registered service") },
  endpoint: { none: without("requests without an endpoint", "that were not for a registered service") },
  client: { unknown: without("requests without a known program", "whose client program was not recorded") },
  subject: { none: without("requests without a verified identity", "that came with a key alone") },
  task: { none: without("requests without a task", "that belong to no task") },
  task_type: {
    none: without("requests without a task", "that belong to no task"),
    // a task may be older than the index of tasks keeps them, and an index in Redis is not asked
    unknown: {
      label: "tasks without a known type",
      reason:
        "The index of tasks in PostgreSQL did not know the tasks of these requests, or not their types, within a day.",
      search: {}
    }
  }
}

/** Explains a group without a label. Returns `undefined` if the group has one. */
export const unlabelledOf = (kind: string, name: string): Unlabelled | undefined => {
  const names = unlabelled[kind]
  return names !== undefined && Object.hasOwn(names, name) ? names[name] : undefined
}
