import type { ReactNode } from "react"
import styles from "./Facts.module.css"

export type Fact = readonly [name: string, value: ReactNode]

/** Names and values, one below the other. */
export const Facts = ({ facts }: { readonly facts: ReadonlyArray<Fact> }) => (
  <dl className={styles.facts}>
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value === null || value === undefined || value === "" ? "–" : value}</dd>
      </div>
    ))}
  </dl>
)
