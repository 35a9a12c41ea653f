import { Button, Skeleton } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { useSettled } from "../../../shared/page/useSettled.ts"
import { countedText } from "../../../shared/words/format.ts"
import { type Meaning, meaningOfReadiness, StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./Attention.module.css"
import type { Finding } from "./findings.ts"
import { useFindings } from "./useFindings.ts"

const words: Readonly<Record<Finding["weight"], readonly [Meaning, string]>> = {
  3: ["bad", "now"],
  2: ["warning", "soon"],
  1: ["idle", "look"]
}

const fewest = 8
const title = "Needs attention"
const looking = "looking …"

/** What needs a person, the worst first. */
export const Attention = () => {
  const found = useFindings()
  const { failed, findings, isPending, partial, retry, status } = found
  const isSettled = useSettled([found])
  // each source that answers may put its findings above those of another, just as a person points at one
  const known = isSettled ? findings : []
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? known : known.slice(0, fewest)
  return (
    <Panel
      title={title}
      note={
        <>
          {status !== undefined && <Readiness status={status} />}{" "}
          {isPending ? looking : findings.length === 0 ? undefined : countedText(findings.length, "finding")}
        </>
      }
      isBusy={!isSettled}
      flush
    >
      {isPending && known.length === 0 && <Place />}
      {/* nobody knows while a part cannot be looked at */}
      {!isPending && findings.length === 0 && failed.length === 0 && (
        <p className={styles.note}>Nothing needs you: no budget ends early, no key expires, and nothing fails.</p>
      )}
      {shown.length > 0 && (
        <ul className={styles.list}>
          {shown.map((finding) => (
            <Row key={finding.id} finding={finding} />
          ))}
        </ul>
      )}
      {known.length > fewest && (
        <p className={styles.note}>
          <Button variant="subtle" onClick={() => setWhole(!isWhole)}>
            {isWhole ? "Show the worst" : `Show all ${findings.length}`}
          </Button>
        </p>
      )}
      {partial.length > 0 && <p className={styles.note}>Looks only at {partial.join(", ")}.</p>}
      {failed.length > 0 && (
        <p className={styles.note} role="status">
          Could not look at {failed.join(", ")}.{" "}
          <Button variant="subtle" onClick={retry}>
            Try again
          </Button>
        </p>
      )}
    </Panel>
  )
}

/** Holds the place of the panel until its turn comes. */
export const AttentionPlace = () => (
  <Panel title={title} note={looking} isBusy flush>
    <Place />
  </Panel>
)

/** As high as the findings of a large installation, so that the charts below them on a phone stay where they are. */
const Place = () => <Skeleton height={320} />

type Status = NonNullable<ReturnType<typeof useFindings>["status"]>

/** As the page of the system says it. */
const Readiness = ({ status }: { readonly status: Status }) => (
  <StatusWord meaning={meaningOfReadiness[status]}>process {status.replace("_", " ")}</StatusWord>
)

const Row = ({ finding: { name, path, search, sentence, weight } }: { readonly finding: Finding }) => {
  const [meaning, word] = words[weight]
  return (
    <li>
      <StatusWord meaning={meaning}>{word}</StatusWord>
      <Link to={path} {...(search !== undefined && { search })}>
        {name !== undefined && (
          <>
            <strong>
              <ForeignText title={name}>{name}</ForeignText>
            </strong>{" "}
          </>
        )}
        {sentence}
      </Link>
    </li>
  )
}
