import { Link } from "@tanstack/react-router"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { SpendUntil } from "../../../shared/keys/SpendUntil.tsx"
import { type Fact, Facts } from "../../../shared/words/Facts.tsx"
import { When } from "../../../shared/words/When.tsx"
import { Due, KeyName, KeySpend, KeyState, Tags } from "./KeyWords.tsx"
import type { Key } from "./key.ts"

const foreign = (text: string | null) => text !== null && <ForeignText key={text}>{text}</ForeignText>

/** What there is to know of a key, beside its policy. */
export const KeyFacts = ({ of: key }: { readonly of: Key }) => {
  const facts: ReadonlyArray<Fact> = [
    ["Name", <KeyName key="name" of={key} />],
    [
      "State",
      <span key="state">
        <KeyState of={key} /> {key.state_reason}
      </span>
    ],
    ["Description", foreign(key.description)],
    ["Owner", foreign(key.owner_email)],
    [
      "Project",
      key.project_id === null ? (
        "none: the key is individual"
      ) : (
        <Link key="project" to="/projects/$id" params={{ id: key.project_id }}>
          <ForeignText>{key.project_name ?? key.project_id}</ForeignText>
        </Link>
      )
    ],
    ["Team", foreign(key.team_id)],
    ["Tags", key.tags.length > 0 && <Tags key="tags" tags={key.tags} />],
    [
      "Spend this month",
      <span key="spend">
        <KeySpend of={key} />, <SpendUntil of={key} />
      </span>
    ],
    ["Last used", <When key="used" at={key.last_used_at} absent="never" />],
    ["Expires", <Due key="expires" at={key.expires_at} absent="never" />],
    ["Rotation due", <Due key="rotation" at={key.rotation_due_at} absent="never" />],
    ["Old secret works until", key.previous_key_expires_at && <When key="old" at={key.previous_key_expires_at} />],
    ["Holder may rotate it", key.holder_rotation ? "yes" : "no"],
    [
      "Upstream credential",
      <Link key="credential" to="/upstreams" search={{ tab: "credentials", key_id: key.id }}>
        which it gets
      </Link>
    ],
    ["Prefix", <code key="prefix">{key.key_prefix}</code>],
    ["Created", <When key="created" at={key.created_at} />],
    ["Changed", <When key="changed" at={key.updated_at} />]
  ]
  return <Facts facts={facts.map(([name, value]) => [name, value === false ? null : value])} />
}
