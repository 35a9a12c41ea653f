import { Badge, Group } from "@mantine/core"
import { useNow } from "../../../address/useNow.ts"
import { Meter } from "../../../shared/charts/Meter.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Money } from "../../../shared/words/Amounts.tsx"
import { moneyText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./KeyWords.module.css"
import { type Key, keyName, meaningOfState } from "./key.ts"

/** A name that people gave. Text of any direction stays within it. */
export const KeyName = ({ of: key }: { readonly of: Key }) => (
  <ForeignText className={styles.name}>{keyName(key)}</ForeignText>
)

/** Whether the key can be used, and why not. */
export const KeyState = ({ of: { state, state_reason } }: { readonly of: Key }) => {
  const word = <StatusWord meaning={meaningOfState[state]}>{state}</StatusWord>
  return state_reason === null ? (
    word
  ) : (
    <span title={state_reason}>
      {word}
      <span className={styles.hidden}> {state_reason}</span>
    </span>
  )
}

/** The cost of this month, against the budget if there is one. */
export const KeySpend = ({ of: key }: { readonly of: Key }) =>
  key.monthly_budget_usd === null ? (
    <Money usd={key.spend_this_month_usd} />
  ) : (
    <Meter
      label={`Spend of ${keyName(key)} this month`}
      used={key.spend_this_month_usd}
      limit={key.monthly_budget_usd}
      format={moneyText}
    />
  )

const soonMs = 7 * 86_400_000

interface DueProps {
  readonly at: string | null
  readonly absent: string
}

/** A time that comes nearer. It warns from a week before. */
export const Due = ({ absent, at }: DueProps) => {
  const now = useNow(10_000)
  if (at === null) return <span className={styles.muted}>{absent}</span>
  const left = new Date(at).getTime() - now
  if (left > soonMs) return <When at={at} />
  return (
    <StatusWord meaning={left > 0 ? "warning" : "bad"}>
      <When at={at} />
    </StatusWord>
  )
}

export const Tags = ({ tags }: { readonly tags: ReadonlyArray<string> }) => (
  <Group gap={4} wrap="nowrap" className={styles.tags ?? ""}>
    {tags.map((tag) => (
      <Badge key={tag} variant="light" color="gray" tt="none" radius="sm" fw={500} flex="none">
        <ForeignText>{tag}</ForeignText>
      </Badge>
    ))}
  </Group>
)
