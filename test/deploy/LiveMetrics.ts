import type { Grouping, Matcher, Query, Selector } from "./PromQL.ts"

type Labels = Readonly<Record<string, string>>

/** The series of each metric, as a process serves them. */
export type LiveMetrics = ReadonlyMap<string, ReadonlyArray<Labels>>

export const read = (page: string): LiveMetrics => {
  const metrics = new Map<string, Array<Labels>>()
  for (const line of page.split("\n")) {
    const [, metric, labels = ""] = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (metric === undefined) continue
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = "", value = ""]) => [
      name,
      JSON.parse(`"${value}"`)
    ])
    metrics.set(metric, [...(metrics.get(metric) ?? []), Object.fromEntries(pairs)])
  }
  return metrics
}

/** Prometheus itself puts these on every series. */
const ofTargets: ReadonlySet<string> = new Set(["job", "instance"])

/** What a query names that no process has. Recorded metrics are known by the labels that their rules leave. */
export const unknownIn = (
  live: LiveMetrics,
  recorded: ReadonlyMap<string, ReadonlySet<string>>,
  { groupings, selectors }: Query
): ReadonlyArray<string> => {
  const labelsOf = (metric: string): ReadonlySet<string> | undefined => {
    const series = live.get(metric)
    return series === undefined ? recorded.get(metric) : new Set(series.flatMap((labels) => Object.keys(labels)))
  }
  const ofSelector = (selector: Selector): ReadonlyArray<string> => {
    const { matchers, metric } = selector
    const labels = labelsOf(metric)
    if (labels === undefined) return [`no process has the metric ${metric}`]
    const unknown = matchers.filter(({ label }) => !labels.has(label) && !ofTargets.has(label))
    if (unknown.length > 0) return unknown.map(({ label }) => `${metric} has no label ${label}`)
    const series = live.get(metric)
    return series === undefined || series.some((labels) => matchers.every((matcher) => mayMatch(labels, matcher)))
      ? []
      : [`no series of ${metric} is ${matchers.map(({ label, operator, value }) => label + operator + value).join()}`]
  }
  const ofGrouping = ({ labels, within }: Grouping): ReadonlyArray<string> =>
    within.flatMap(({ metric }) =>
      labels
        .filter((label) => labelsOf(metric)?.has(label) === false && !ofTargets.has(label))
        .map((label) => `${metric} has no label ${label}`)
    )
  return [...new Set([...selectors.flatMap(ofSelector), ...groupings.flatMap(ofGrouping)])]
}

/** A value that a query excludes need not be there. */
const mayMatch = (labels: Labels, { label, operator, value }: Matcher): boolean => {
  if (ofTargets.has(label) || operator === "!=" || operator === "!~") return true
  const found = labels[label] ?? ""
  return operator === "=" ? found === value : new RegExp(`^(?:${value})$`).test(found)
}
