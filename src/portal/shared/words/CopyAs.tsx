import { Button, Menu } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { IconCode } from "@tabler/icons-react"
import type { BodyOf } from "../../api/Endpoints.ts"

/** Sections of a configuration document. */
export type ConfigurationSections = Omit<BodyOf<"POST", "/admin-ui/admin/configuration/plan">, "format">

interface Props {
  /** The request that the page makes: `GET /admin-ui/admin/keys?state=active`. */
  readonly method?: string
  readonly address: string
  readonly body?: unknown
  /** The same as an entry of the configuration document, where it has one. */
  readonly configuration?: ConfigurationSections | undefined
}

/** The paths that a gateway key opens. */
const ofHolders = "/admin-ui/v1/"

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

export const curlOf = ({ address, body, method = "GET" }: Pick<Props, "method" | "address" | "body">): string =>
  [
    `curl -s ${method === "GET" ? "" : `-X ${method} `}${quoted(window.location.origin + address)}`,
    `-H "authorization: Bearer $${address.startsWith(ofHolders) ? "KEY" : "OPERATOR"}"`,
    ...(body === undefined ? [] : [`-H 'content-type: application/json' -d ${quoted(JSON.stringify(body))}`])
  ].join(" \\\n  ")

/** Everything that a page shows or does can be done without it. */
export const CopyAs = ({ address, body, configuration, method = "GET" }: Props) => {
  const copy = (text: string, what: string) =>
    void navigator.clipboard.writeText(text).then(
      () => notifications.show({ message: `${what} is copied.` }),
      () => notifications.show({ message: "The browser did not let the page copy.", color: "red" })
    )
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<IconCode size={14} />}>
          Copy as
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => copy(curlOf({ method, address, body }), "The command")}>curl</Menu.Item>
        {configuration !== undefined && (
          <Menu.Item onClick={() => copy(JSON.stringify(configuration, null, 2), "The configuration")}>
            configuration
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
