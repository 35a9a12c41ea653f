import { Stack } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { KeyPicker } from "../../shared/keys/KeyPicker.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"

const path = "/admin-ui/admin/keys/:id/upstream-credentials"

type OfFamily = ResponseOf<"GET", typeof path>[number]

/** Whose credential the requests of one key carry to the upstream of each family. */
export const CredentialOfKey = () => {
  const { change, text } = useTextSearch()
  const mayPick = useAllowed("operators:manage")
  const key = text("key_id")
  const credentials = useApi(path, { params: { id: key ?? "" } }, { enabled: key !== undefined })
  if (!mayPick && key === undefined) return null
  return (
    <Panel title="Which credential does a key get?" {...(key !== undefined && { query: credentials })}>
      <Stack gap="sm">
        <KeyPicker value={key} onChange={(key_id) => change({ key_id })} />
        {credentials.data?.map((one) => (
          <Family key={one.family} of={one} />
        ))}
      </Stack>
    </Panel>
  )
}

const vendors: Readonly<Record<OfFamily["family"], string>> = { openai: "OpenAI", anthropic: "Anthropic" }

const owners: Readonly<Record<OfFamily["places"][number]["source"], string>> = {
  key: "the key",
  project: "its project",
  provider: "the provider",
  environment: "the environment"
}

const placeWords: Readonly<Record<OfFamily["places"][number]["state"], string>> = {
  decides: "has one, which decides",
  none: "has none",
  disabled: "has one that is disabled",
  for_other_upstream: "has one for another upstream",
  not_reached: "is not asked"
}

const Family = ({ of: { explanation, family, places, state, upstream } }: { readonly of: OfFamily }) => (
  <section aria-label={`Requests of ${vendors[family]}’s kind`}>
    <Facts
      facts={[
        [
          `${vendors[family]}’s kind`,
          <StatusWord key="state" meaning={state === "sent" ? "good" : "bad"}>
            {explanation}
          </StatusWord>
        ],
        [
          "Upstream",
          upstream && (
            <>
              <ForeignText>{upstream.name}</ForeignText> at <ForeignText>{upstream.origin}</ForeignText>, in the header{" "}
              <code>{upstream.header}</code>
            </>
          )
        ],
        [
          "Asked in this order",
          places.map(({ source, state }) => `${owners[source]} ${placeWords[state]}`).join(", ") || null
        ]
      ]}
    />
  </section>
)
