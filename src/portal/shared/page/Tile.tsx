import { Skeleton } from "@mantine/core"
import type { ReactNode } from "react"
import styles from "./Tile.module.css"

interface Props {
  readonly label: string
  /** `undefined` while it loads. */
  readonly value: ReactNode | undefined
  /** Under the value: the period before, what it is a part of. */
  readonly detail?: ReactNode
  readonly chart?: ReactNode
}

/** One number that answers one question. */
export const Tile = ({ chart, detail, label, value }: Props) => (
  <section className={styles.tile} aria-label={label}>
    <p className={styles.label}>{label}</p>
    <div className={styles.value}>{value ?? <Skeleton height={26} width={90} />}</div>
    <p className={styles.detail}>{detail ?? "\u00a0"}</p>
    {chart}
  </section>
)

export const Tiles = ({ children }: { readonly children: ReactNode }) => <div className={styles.tiles}>{children}</div>
