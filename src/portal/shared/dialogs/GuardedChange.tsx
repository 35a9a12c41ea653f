import { Stack } from "@mantine/core"
import { type ReactNode, useEffect, useEffectEvent, useState } from "react"
import { ApiError, type FieldError } from "../../api/ApiError.ts"
import { FieldDiff } from "../words/FieldDiff.tsx"
import { When } from "../words/When.tsx"
import { ChangeDialog } from "./ChangeDialog.tsx"
import styles from "./GuardedChange.module.css"

export type FlatFields = Readonly<Record<string, unknown>>

/** `null` is the time of settings that are not stored. */
export interface Versioned {
  readonly updated_at: string | null
}

/** A guarded change shows both versions if somebody else was faster. This is all that it needs to know of the object. */
export interface Guard<Entity extends Versioned> {
  /** What the person saw when the change began. */
  readonly base: Entity
  /** Reads it again, once the server says that somebody else has changed it. */
  readonly reread: () => Promise<Entity | undefined>
  /** The fields of the entity that the change is about, by the API's names. */
  readonly fieldsOf: (entity: Entity) => FlatFields
  /** Only the fields that change, with a word in place of a secret. */
  readonly changes: FlatFields
}

interface Props<Entity extends Versioned> extends Guard<Entity> {
  readonly title: string
  readonly action: string
  readonly isBusy: boolean
  readonly error: ApiError | null
  /** Makes the change to this version, which the person has seen, and to no other one. */
  readonly onConfirm: (version: Entity) => void
  readonly onClose: () => void
  /** Whom it hits. */
  readonly children?: ReactNode
}

export const changedMeanwhile = "changed_since_read"

/** Hands the refused fields to the form, which shows why. A change that came too late is no mistake in a field. */
export const tellRefused = (
  { code, fields }: ApiError,
  onRefused: ((errors: ReadonlyArray<FieldError>) => void) | undefined
): void => {
  if (code !== changedMeanwhile && fields.length > 0) onRefused?.(fields)
}

/** Shows the difference before it is made. If somebody else was faster, it shows both versions, and asks again. */
export const GuardedChange = <Entity extends Versioned>(props: Props<Entity>) => {
  const { action, changes, children, error, fieldsOf, isBusy, onClose, onConfirm, reread, title } = props
  // the page behind the dialog goes on to follow what others change
  const [base] = useState(props.base)
  const [latest, setLatest] = useState<Entity>()
  const [readError, setReadError] = useState<ApiError | null>(null)
  const [sentAt, setSentAt] = useState<Entity["updated_at"]>()
  const current = latest ?? base
  const isConflict = error?.code === changedMeanwhile
  const isUnread = isConflict && sentAt === current.updated_at
  const theirs = latest === undefined ? undefined : fieldsOf(latest)
  const readTheirs = useEffectEvent(async () => {
    setReadError(null)
    try {
      setLatest(await reread())
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause
      setReadError(cause)
    }
  })
  useEffect(() => {
    if (isUnread) void readTheirs()
  }, [isUnread])
  const confirm = () => {
    setSentAt(current.updated_at)
    onConfirm(current)
  }
  return (
    <ChangeDialog
      title={title}
      action={theirs === undefined ? action : "Apply mine to the new version"}
      isBusy={isBusy || (isUnread && readError === null)}
      error={isConflict ? readError : error}
      onConfirm={confirm}
      onClose={onClose}
    >
      {theirs === undefined ? (
        <FieldDiff before={pick(fieldsOf(base), changes)} after={changes} />
      ) : (
        <Stack gap="sm">
          <p role="status">
            Somebody else changed this <When at={latest?.updated_at} />, after you had begun.
          </p>
          <section className={styles.version}>
            <h3>What they changed</h3>
            <FieldDiff
              before={fieldsOf(base)}
              after={theirs}
              absent="Nothing that is shown here. They may have stored another secret."
            />
          </section>
          <section className={styles.version}>
            <h3>What yours would change now</h3>
            <FieldDiff before={pick(theirs, changes)} after={changes} />
          </section>
        </Stack>
      )}
      {children}
    </ChangeDialog>
  )
}

const pick = (fields: FlatFields, names: FlatFields): FlatFields =>
  Object.fromEntries(Object.keys(names).map((name) => [name, fields[name]]))
