import { Button } from "@mantine/core"
import { IconPlayerPlay } from "@tabler/icons-react"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { moneyText } from "../../../shared/words/format.ts"
import { Decision } from "./Decision.tsx"
import styles from "./KeyTest.module.css"
import { SentOutcome } from "./SentOutcome.tsx"

type Protocol = NonNullable<BodyOf<"POST", "/admin-ui/v1/me/test">>["protocol"]

/** The protocol in which each tool speaks. Those that are not named here chat. */
const protocols: Readonly<Record<string, Protocol>> = {
  "anthropic-typescript": "messages",
  "anthropic-python": "messages",
  "claude-code": "messages",
  codex: "responses"
}

/** The fewest tokens that the answer may have in each protocol. */
const tokens: Readonly<Record<Protocol, number>> = { chat: 1, responses: 16, messages: 1 }

/** Models count the one word that is sent, and the frame of the message, as about so many tokens. */
const inputTokens = 10

interface Price {
  readonly input_usd_per_million: number | null
  readonly output_usd_per_million: number | null
}

interface Props {
  readonly tool: string
  readonly model: string
  readonly price: Price | undefined
}

/** Sends a request of one token, or only asks what would become of one, and says it in plain words. */
export const KeyTest = ({ model, price, tool }: Props) => {
  const test = useApiWrite("POST", "/admin-ui/v1/me/test", [])
  const protocol = protocols[tool] ?? "chat"
  const asked = test.variables?.body
  const isAboutThis = asked?.model === model && asked.protocol === protocol && !test.isPending
  const ask = (send: boolean) => test.mutate({ body: { protocol, model, send } })
  return (
    <div className={styles.test}>
      <div className={styles.ask}>
        <Button
          leftSection={<IconPlayerPlay size={14} />}
          loading={test.isPending && asked?.send === true}
          disabled={test.isPending}
          onClick={() => ask(true)}
        >
          Test
        </Button>
        <span>
          Sends a short request with your key to <ForeignText>{model}</ForeignText>, which may answer with{" "}
          {tokens[protocol] === 1 ? "one token" : `${tokens[protocol]} tokens`}. It counts toward your limits and costs{" "}
          {costText(price, tokens[protocol])}.
        </span>
      </div>
      <div className={styles.ask}>
        <Button
          variant="subtle"
          size="compact-sm"
          loading={test.isPending && asked?.send === false}
          disabled={test.isPending}
          onClick={() => ask(false)}
        >
          Only ask, send nothing
        </Button>
        <span>Would the example get through now? That costs nothing. Longer requests need more of your limits.</span>
      </div>
      <div aria-live="polite">
        {isAboutThis && test.error !== null && <ErrorNote error={test.error} />}
        {isAboutThis &&
          test.data !== undefined &&
          (test.data.sent === null ? (
            <Decision result={test.data} wasToBeSent={asked.send === true} />
          ) : (
            <SentOutcome sent={test.data.sent} />
          ))}
      </div>
    </div>
  )
}

const costText = (price: Price | undefined, outputTokens: number): string => {
  const { input_usd_per_million: input = null, output_usd_per_million: output = null } = price ?? {}
  if (input === null || output === null) return "a little: the price of the model is not known here"
  return `about ${moneyText((input * inputTokens + output * outputTokens) / 1_000_000)}`
}
