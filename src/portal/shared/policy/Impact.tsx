import { useDebouncedValue } from "@mantine/hooks"
import { hashKey, keepPreviousData } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { call } from "../../api/control.ts"
import type { BodyOf, ResponseOf } from "../../api/Endpoints.ts"
import { useRead } from "../../api/reads.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { ErrorNote } from "../page/ErrorNote.tsx"
import { FieldDiff } from "../words/FieldDiff.tsx"
import { countText } from "../words/format.ts"
import { When } from "../words/When.tsx"
import styles from "./Impact.module.css"

const path = "/admin-ui/admin/policy/impact"
export type Proposal = BodyOf<"POST", typeof path>
type Impact = ResponseOf<"POST", typeof path>

const typingMs = 350

/** Asks the server whom a change of a policy would hit. Nothing changes. */
const useImpact = (proposal: Proposal) => {
  const [asked] = useDebouncedValue(proposal, typingMs)
  const impact = useRead<Impact>({
    queryKey: [path, asked],
    queryFn: ({ signal }) => call("POST", path, { body: asked }, { signal }),
    placeholderData: keepPreviousData
  })
  // the answer is about the proposal before also while a person still types
  return { impact, isBehind: impact.isFetching || hashKey([asked]) !== hashKey([proposal]) }
}

/** Whom a change of a policy would hit, and what each key gains and loses. */
export const ImpactNote = ({ proposal }: { readonly proposal: Proposal }) => {
  const {
    impact: { data, error, refetch },
    isBehind
  } = useImpact(proposal)
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />
  return (
    <section
      className={styles.impact}
      aria-label="Whom it hits"
      aria-busy={isBehind}
      data-dimmed={isBehind || undefined}
    >
      <h3>Whom it hits</h3>
      {data === undefined ? (
        <p className={styles.note}>Looking at the keys…</p>
      ) : (
        <Keys impact={data} isKey={proposal.key_id !== undefined} />
      )}
    </section>
  )
}

const Keys = ({ impact, isKey }: { readonly impact: Impact; readonly isKey: boolean }) => {
  const { keys, keys_changed, keys_covered, keys_looked_at, shared } = impact
  return (
    <>
      <p role="status">{isKey ? keySentence(impact) : layerSentence(impact)}</p>
      {keys_looked_at < keys_covered && (
        <p className={styles.note}>
          These are of the {countText(keys_looked_at)} keys that were used last.{" "}
          {countText(keys_covered - keys_looked_at)} others were not looked at.
        </p>
      )}
      {shared.length > 0 && (
        <FieldDiff
          before={Object.fromEntries(shared.map(({ before, path: name }) => [`shared.${name}`, before]))}
          after={Object.fromEntries(shared.map(({ after, path: name }) => [`shared.${name}`, after]))}
        />
      )}
      <ul className={styles.keys}>
        {keys.map(({ effects, id, key_prefix, last_used_at, name, project_name }) => (
          <li key={id}>
            <div className={styles.key}>
              <Link to="/keys/$id" params={{ id }}>
                <ForeignText>{name ?? key_prefix}</ForeignText>
              </Link>
              {project_name !== null && <ForeignText className={styles.note}>{project_name}</ForeignText>}
              <span className={styles.note}>
                used <When at={last_used_at} absent="never" />
              </span>
            </div>
            <ul className={styles.effects}>
              {effects.map((effect) => (
                <li key={effect} data-loses={isLoss(effect) || undefined}>
                  {effect}
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
      {keys_changed > keys.length && (
        <p className={styles.note}>{countText(keys_changed - keys.length)} more are not listed.</p>
      )}
    </>
  )
}

/** The server's words begin with what happens. */
const isLoss = (effect: string): boolean => /^(loses|is denied)/.test(effect)

const keySentence = ({ keys_changed }: Impact): string =>
  keys_changed === 0
    ? "What the key may do stays the same: a layer above it is stricter already, or nothing changes."
    : "What the key may do changes:"

const layerSentence = ({ keys_changed, keys_covered }: Impact): string =>
  keys_covered === 0
    ? "No usable key is under this layer yet."
    : keys_changed === 0
      ? `${countText(keys_covered)} usable ${keys_covered === 1 ? "key is" : "keys are"} under this layer. For none of them the policy of its own requests changes.`
      : `${countText(keys_covered)} usable ${keys_covered === 1 ? "key is" : "keys are"} under this layer, and ${countText(keys_changed)} ${keys_changed === 1 ? "gets" : "get"} another policy.`
