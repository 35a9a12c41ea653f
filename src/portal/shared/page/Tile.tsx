import { Skeleton, UnstyledButton } from "@mantine/core"
import { type ReactNode, useId } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { useRetry } from "../../api/useRetry.ts"
import { Age } from "./Age.tsx"
import type { PartQuery } from "./PartQuery.ts"
import styles from "./Tile.module.css"

interface Props {
  readonly label: string
  /** From which the value is. While it has no answer, the tile says so instead of showing a value. */
  readonly query: PartQuery
  readonly value: ReactNode
  /** The value or the detail may need a line more. The tile has room for it from the beginning, so that nothing moves. */
  readonly isLong?: boolean
  /** Under the value: the period before, what it is a part of. */
  readonly detail?: ReactNode
  readonly chart?: ReactNode
  /** The number can be chosen, so that the page shows what it counts. Choosing it again takes that back. */
  readonly choice?: Choice
}

interface Choice {
  readonly isChosen: boolean
  readonly onChange: (isChosen: boolean) => void
}

/** One number that answers one question. After a failure it keeps what it had. */
export const Tile = ({ chart, choice, detail, isLong = false, label, query, value }: Props) => {
  const valueId = useId()
  const isKnown = query.data !== undefined
  const { error } = query
  return (
    <section className={styles.tile} data-long={isLong || undefined} aria-label={label} aria-busy={query.isPending}>
      <p className={styles.label}>
        {choice === undefined ? (
          label
        ) : (
          <UnstyledButton
            className={styles.choice}
            onClick={() => choice.onChange(!choice.isChosen)}
            aria-pressed={choice.isChosen}
            aria-describedby={valueId}
          >
            {label}
          </UnstyledButton>
        )}
      </p>
      <div id={valueId} className={styles.value}>
        {isKnown ? value : error === null ? <Skeleton height={26} width={90} /> : "not known"}
      </div>
      {isKnown || error === null ? (
        <p className={styles.detail}>
          {/* its place is held while the value loads */}
          <span data-hidden={!isKnown || undefined}>{detail || "\u00a0"}</span> <Age query={query} />
        </p>
      ) : (
        <Failure error={error} label={label} onRetry={() => query.refetch()} />
      )}
      {isKnown && chart}
    </section>
  )
}

interface FailureProps {
  readonly error: ApiError
  readonly label: string
  readonly onRetry: () => unknown
}

const Failure = ({ error, label, onRetry }: FailureProps) => {
  const { isAsking, retry } = useRetry(onRetry)
  const words = isAsking ? "Asking…" : "Try again"
  return (
    <div className={styles.detail} aria-busy={isAsking}>
      <p>{error.message}</p>
      <p className={styles.code}>
        {error.code}
        {error.requestId !== undefined && <> · request {error.requestId}</>}
      </p>
      <UnstyledButton className={styles.retry} onClick={retry} aria-label={`${words}: ${label}`}>
        {words}
      </UnstyledButton>
    </div>
  )
}

export const Tiles = ({ children }: { readonly children: ReactNode }) => <div className={styles.tiles}>{children}</div>
