import { Button } from "@mantine/core"
import { IconPlayerPlay } from "@tabler/icons-react"
import type { BodyOf, ResponseOf } from "../../../api/Endpoints.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { PlainWords } from "../common/PlainWords.tsx"
import { RaiseButton } from "../raise/RaiseButton.tsx"
import styles from "./KeyTest.module.css"

type Protocol = NonNullable<BodyOf<"POST", "/admin-ui/v1/me/test">>["protocol"]
type Result = ResponseOf<"POST", "/admin-ui/v1/me/test">

/** The protocol in which each tool speaks. Those that are not named here chat. */
const protocols: Readonly<Record<string, Protocol>> = {
  "anthropic-typescript": "messages",
  "anthropic-python": "messages",
  "claude-code": "messages",
  codex: "responses"
}

interface Props {
  readonly tool: string
  readonly model: string
}

/** Asks what the gateway would do with a short request now, and says it in plain words. */
export const KeyTest = ({ model, tool }: Props) => {
  const test = useApiWrite("POST", "/admin-ui/v1/me/test", [])
  const protocol = protocols[tool] ?? "chat"
  const asked = test.variables?.body
  const isAboutThis = asked?.model === model && asked.protocol === protocol && !test.isPending
  return (
    <div className={styles.test}>
      <div className={styles.ask}>
        <Button
          leftSection={<IconPlayerPlay size={14} />}
          loading={test.isPending}
          onClick={() => test.mutate({ body: { protocol, model } })}
        >
          Test
        </Button>
        <span>
          Would the example with <ForeignText>{model}</ForeignText> get through now? Nothing is sent, and it costs
          nothing. Longer requests need more of your limits.
        </span>
      </div>
      <div aria-live="polite">
        {isAboutThis && test.error !== null && <ErrorNote error={test.error} />}
        {isAboutThis && test.data !== undefined && <Outcome result={test.data} />}
      </div>
    </div>
  )
}

const Outcome = ({ result }: { readonly result: Result }) => {
  const { allowed, guardrails, meter, resets_at, sentence, what_to_do } = result
  return (
    <div className={styles.outcome}>
      <StatusWord meaning={allowed ? "good" : "bad"}>
        {allowed ? "It would get through" : "It would be refused"}
      </StatusWord>
      <p>
        {sentence} {allowed ? "Now run it: it appears below." : <PlainWords text={what_to_do} />}
        {resets_at !== null && (
          <>
            {" "}
            The limit begins anew <When at={resets_at} />.
          </>
        )}
      </p>
      {guardrails.length > 0 && (
        <p>
          Checked on the way: <ForeignText>{guardrails.join(", ")}</ForeignText>.
        </p>
      )}
      {!allowed && <RaiseButton meter={meter ?? undefined} />}
    </div>
  )
}
