import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"
import type { SystemProps } from "./system.ts"

/** The words of the checks that need somebody, and what to do. Other words are well. */
const fixes: Readonly<Record<string, readonly [Meaning, string]>> = {
  down: ["bad", "It cannot be reached. Look at its address and at the network; the process tries again by itself."],
  behind: ["warning", "A newer configuration is stored and not applied yet. It should be within seconds."],
  unreadable_rows: ["warning", "A newer version wrote rows that this one cannot read. Update this process."],
  unreadable: ["bad", "A newer version wrote the provider. Update this process, or store the provider again."],
  none: ["warning", "No upstream is configured for these requests. Add a provider."],
  simulator: ["warning", "Answers are simulated, and no model is called. Add a provider."],
  opening: ["working", "The process is starting."],
  closing: ["warning", "The process is draining: it accepts no new connections."]
}

/** What the process that answers has checked, with the way out where something is wrong. */
export const Findings = ({ query }: SystemProps) => {
  const system = query.data
  const checks = Object.entries(system?.checks ?? {})
  return (
    <Panel
      title="Checks"
      note={system === undefined ? undefined : `of ${system.role} ${system.version}, Node.js ${system.node_version}`}
      query={query}
      height={150}
    >
      <Facts
        facts={[
          ...checks.map(([name, word]) => {
            const [meaning, fix] = fixes[word] ?? (["good", undefined] as const)
            return [
              name.replaceAll("_", " "),
              <span key={name}>
                <StatusWord meaning={meaning}>{word.replaceAll("_", " ")}</StatusWord> {fix}
              </span>
            ] as const
          }),
          ...(system?.data_lost_at_exit === true
            ? [
                [
                  "data",
                  <span key="data">
                    <StatusWord meaning="warning">lost at exit</StatusWord> A part keeps its data in the process alone.
                    Start with <code>--data DIR</code>, or with real servers.
                  </span>
                ] as const
              ]
            : [])
        ]}
      />
    </Panel>
  )
}
