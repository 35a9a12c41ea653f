/** The metrics page of one process. `worker` is the label of its series, `undefined` for the supervisor. */
export interface Page {
  readonly worker: string | undefined
  readonly text: string
}

interface Family {
  /** The lines `# HELP` and `# TYPE`. */
  readonly comments: ReadonlyArray<string>
  readonly samples: Array<string>
}

/**
 * Merges pages in the format of Prometheus. Each family appears once, with the comments of the first page that has it, and
 * with the series of all pages. The order of the families is that of their first appearance.
 */
export const merge = (pages: ReadonlyArray<Page>): string => {
  const families = new Map<string, Family>()
  for (const { text, worker } of pages) {
    for (const [name, { comments, samples }] of familiesOf(text)) {
      const family = families.get(name) ?? { comments, samples: [] }
      families.set(name, family)
      for (const sample of samples) family.samples.push(worker === undefined ? sample : withLabel(sample, worker))
    }
  }
  return [...families.values()]
    .flatMap(({ comments, samples }) => [...comments, ...samples])
    .map((line) => `${line}\n`)
    .join("")
}

/** All samples after the comments of a family belong to it. A histogram's samples have names of their own. */
const familiesOf = (page: string): ReadonlyMap<string, { comments: Array<string>; samples: Array<string> }> => {
  const families = new Map<string, { comments: Array<string>; samples: Array<string> }>()
  let current: { comments: Array<string>; samples: Array<string> } | undefined
  for (const line of page.split("\n")) {
    const name = /^# (?:HELP|TYPE) (\S+)/.exec(line)?.[1]
    if (name !== undefined) {
      current = families.get(name) ?? { comments: [], samples: [] }
      families.set(name, current)
      current.comments.push(line)
    } else if (line !== "") current?.samples.push(line)
  }
  return families
}

/** A label value may contain any character, but a name contains neither a brace nor a space. */
const withLabel = (sample: string, worker: string): string => {
  const label = `worker="${worker}"`
  const end = sample.search(/[{ ]/)
  const name = sample.slice(0, end)
  return sample[end] === "{"
    ? `${name}{${label}${sample[end + 1] === "}" ? "" : ","}${sample.slice(end + 1)}`
    : `${name}{${label}}${sample.slice(end)}`
}
