import type { ReactNode } from "react"
import { ForeignText } from "../foreign/ForeignText.tsx"
import styles from "./Facts.module.css"

/** The `id` tells facts apart whose names may be alike, such as those of keys. */
export type Fact = readonly [name: string, value: ReactNode, id?: string]

/** A name such as `accepted_algorithms` may break between its words, so that a narrow page does not break it within one. */
const withBreaks = (name: string): ReadonlyArray<ReactNode> =>
  // biome-ignore lint/suspicious/noArrayIndexKey: a name may have a word twice
  name.split(/(?<=_)/).flatMap((word, place) => (place === 0 ? [word] : [<wbr key={place} />, word]))

/** Names and values, one below the other. */
export const Facts = ({ facts }: { readonly facts: ReadonlyArray<Fact> }) => (
  <dl className={styles.facts}>
    {facts.map(([name, value, id = name]) => (
      <div key={id}>
        <dt>
          <ForeignText>{withBreaks(name)}</ForeignText>
        </dt>
        <dd>{value === null || value === undefined || value === "" ? "–" : value}</dd>
      </div>
    ))}
  </dl>
)
