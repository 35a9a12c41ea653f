import { Button, Group } from "@mantine/core"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { type List, withRows } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Segments } from "../../shared/page/Segments.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { stateOf, type Token, tokensPath } from "./operator.ts"
import { RevokeToken } from "./RevokeToken.tsx"
import { RotateToken } from "./RotateToken.tsx"

interface Props {
  readonly list: List<Token>
  readonly kind: Token["kind"]
}

interface Chosen {
  readonly token: Token
  readonly what: "rotate" | "revoke"
}

/** Tokens, or the people who signed in at the identity provider. */
export const TokenList = ({ kind, list }: Props) => {
  const { change, text } = useTextSearch()
  const [chosen, setChosen] = useState<Chosen>()
  const [isAll, setAll] = useState("active")
  const shown = withRows(list, (tokens) =>
    tokens.filter((token) => token.kind === kind && (isAll === "all" || token.active))
  )
  /** The choice of the active ones leaves out all that there are. */
  const hasEnded = list.rows.some((token) => token.kind === kind) && shown.rows.length === 0
  const close = () => setChosen(undefined)
  return (
    <Panel query={list.query} height={320} flush>
      <DataTable
        name={`operators-${kind}`}
        label={kind === "token" ? "Operator tokens" : "People"}
        columns={columnsOf(kind, setChosen)}
        rows={shown.rows}
        rowId={({ id }) => id}
        onOpen={({ id }) => change({ open: id })}
        openId={text("open")}
        list={shown}
        toolbar={
          <Segments
            aria-label="Which"
            data={[
              { value: "active", label: "Active" },
              { value: "all", label: "All, also ended ones" }
            ]}
            value={isAll}
            onChange={setAll}
          />
        }
        empty={
          kind === "token" ? (
            <Empty
              action={<Button onClick={() => change({ do: "create" })}>Create a token</Button>}
              command={curlOf({
                method: "POST",
                address: tokensPath,
                body: { name: "dashboards", scopes: ["usage:read"] }
              })}
            >
              No token is active.
            </Empty>
          ) : (
            <Empty
              action={
                hasEnded && (
                  <Button variant="default" onClick={() => setAll("all")}>
                    Show ended ones too
                  </Button>
                )
              }
            >
              {hasEnded ? (
                "Nobody is signed in by an identity provider now."
              ) : (
                <>
                  Nobody has signed in at an identity provider. Its settings are those of <code>IDENTITY_*</code>.
                </>
              )}
            </Empty>
          )
        }
      />
      {chosen?.what === "rotate" && <RotateToken of={chosen.token} onClose={close} />}
      {chosen?.what === "revoke" && <RevokeToken of={chosen.token} onClose={close} />}
    </Panel>
  )
}

const columnsOf = (kind: Token["kind"], choose: (chosen: Chosen) => void): ReadonlyArray<Column<Token>> => [
  {
    id: "name",
    header: "Name",
    csv: ["id", "name"],
    cell: ({ is_caller, name }) => (
      <>
        <ForeignText>{name}</ForeignText>
        {is_caller && <strong> (you)</strong>}
      </>
    )
  },
  {
    id: "state",
    header: "State",
    main: true,
    width: 100,
    csv: (token) => ({ state: stateOf(token)[1] }),
    cell: (token) => {
      const [meaning, word] = stateOf(token)
      return <StatusWord meaning={meaning}>{word}</StatusWord>
    }
  },
  {
    id: "scopes",
    header: "Scopes",
    csv: ["scopes"],
    cell: ({ scopes }) => (
      <code title={scopes.join(", ")}>{scopes.includes("*") ? "* (everything)" : scopes.join(", ")}</code>
    )
  },
  {
    id: "used",
    header: "Last used",
    main: true,
    width: 120,
    csv: ["last_used_at"],
    cell: ({ last_used_at }) => <When at={last_used_at} absent="never" />
  },
  {
    id: "expires",
    header: kind === "token" ? "Expires" : "Signs out",
    width: 120,
    csv: ["expires_at"],
    cell: ({ expires_at }) => <When at={expires_at} absent="never" />
  },
  {
    id: "sessions",
    header: "Browsers",
    numeric: true,
    width: 80,
    csv: ["session_count"],
    cell: ({ session_count }) => session_count
  },
  {
    id: "prefix",
    header: "Prefix",
    hidden: kind === "person",
    csv: ["token_prefix"],
    cell: ({ token_prefix }) => <code>{token_prefix}</code>
  },
  {
    id: "created",
    header: "Created",
    hidden: true,
    csv: ["created_at"],
    cell: ({ created_at }) => <When at={created_at} />
  },
  {
    id: "actions",
    header: "Actions",
    main: true,
    width: 170,
    cell: (token) =>
      token.active && (
        <Group gap={4} wrap="nowrap">
          {kind === "token" && (
            <Button size="compact-sm" variant="default" onClick={() => choose({ token, what: "rotate" })}>
              Rotate
            </Button>
          )}
          <Button size="compact-sm" variant="default" color="red" onClick={() => choose({ token, what: "revoke" })}>
            Revoke
          </Button>
        </Group>
      )
  }
]
