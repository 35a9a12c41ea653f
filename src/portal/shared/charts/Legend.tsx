import { ForeignText } from "../foreign/ForeignText.tsx"
import { colorOf } from "./colors.ts"
import styles from "./Legend.module.css"
import type { Series } from "./series.ts"

/** Names the series of a chart beside their colours. A chart of one series needs none. */
export const Legend = ({ series }: { readonly series: ReadonlyArray<Series> }) =>
  series.length > 1 && (
    <ul className={styles.legend}>
      {series.map((one, place) => (
        <li key={one.key}>
          <span className={styles.swatch} style={{ background: colorOf(one, place) }} aria-hidden="true" />
          <ForeignText title={one.label}>{one.label}</ForeignText>
        </li>
      ))}
    </ul>
  )
