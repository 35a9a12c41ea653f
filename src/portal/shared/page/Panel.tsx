import { Skeleton } from "@mantine/core"
import { type ReactNode, useId } from "react"
import { Age } from "./Age.tsx"
import { ErrorNote } from "./ErrorNote.tsx"
import styles from "./Panel.module.css"
import { PartBoundary } from "./PartBoundary.tsx"
import type { PartQuery } from "./PartQuery.ts"

interface Props {
  readonly title?: ReactNode
  /** Beside the title: what the panel leaves out, until when it has summed up. */
  readonly note?: ReactNode
  readonly actions?: ReactNode
  /** Without one, the panel has what it shows. */
  readonly query?: PartQuery
  /** Live events add what is new to the content. */
  readonly isFollowed?: boolean
  /** Its content is not the last one yet. */
  readonly isBusy?: boolean
  /** Of the content, in pixels: what is loading takes the place that it will have. */
  readonly height?: number
  /** Shown instead of the content. One sentence, and what to do. */
  readonly empty?: ReactNode
  /** No space around the content, for tables. */
  readonly flush?: boolean
  /**
   * A function has filters around its rows, and shows them in any case, because a filter may be what the rows fail of. It
   * gets what stands in place of the rows while they load, and if they cannot be read.
   */
  readonly children: ReactNode | ((instead: ReactNode) => ReactNode)
}

/** In pixels: what filters take of the height of a panel. */
const filtersHeight = 48

/**
 * A part of a page with a life of its own: it loads, is empty, fails and grows old by itself, while the other parts go
 * on. After a failure it keeps what it had.
 */
export const Panel = ({
  actions,
  children,
  empty,
  flush = false,
  height = 120,
  isBusy = false,
  isFollowed = false,
  note,
  query,
  title
}: Props) => {
  const id = useId()
  const isLoading = query?.isPending === true
  /** The panel still shows the range or the filter before. */
  const isOld = query?.isPlaceholderData === true
  const hasNothing = isLoading || (query?.error != null && query.data === undefined)
  const failure = query?.error && <ErrorNote error={query.error} onRetry={() => query.refetch()} />
  const instead = (skeletonHeight: number) =>
    isLoading ? <Skeleton height={skeletonHeight} /> : hasNothing ? failure : undefined
  const content =
    typeof children === "function" ? children(instead(height - filtersHeight)) : (instead(height) ?? empty ?? children)
  return (
    <section
      className={styles.panel}
      aria-labelledby={title === undefined ? undefined : id}
      aria-busy={isLoading || isOld || isBusy}
    >
      {title !== undefined && (
        <header className={styles.header}>
          <h2 id={id}>{title}</h2>
          {note !== undefined && <span className={styles.note}>{note}</span>}
          {query !== undefined && <Age query={query} isFollowed={isFollowed} />}
          {actions !== undefined && <div className={styles.actions}>{actions}</div>}
        </header>
      )}
      {!hasNothing && failure}
      <div
        className={flush ? styles.flush : styles.content}
        data-dimmed={isOld || undefined}
        style={{ minHeight: hasNothing ? height : undefined }}
      >
        <PartBoundary>{content}</PartBoundary>
      </div>
      {title === undefined && query !== undefined && (
        <div className={styles.footer}>
          <Age query={query} isFollowed={isFollowed} />
        </div>
      )}
    </section>
  )
}
