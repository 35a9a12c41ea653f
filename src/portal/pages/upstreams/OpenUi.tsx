import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { IconExternalLink } from "@tabler/icons-react"
import { call } from "../../api/control.ts"
import { useSubmit } from "../../shared/change/useSubmit.ts"

/** Opens the upstream's own pages, which have an origin of their own. The link works once, within a minute. */
export const OpenUi = () => {
  const { error, isBusy, submit } = useSubmit<unknown>()
  const open = () =>
    submit(async () => {
      const { url } = await call("POST", "/admin-ui/admin/upstream-ui/session", {})
      if (!/^https?:\/\//.test(String(url))) return
      window.open(String(url), "_blank", "noopener,noreferrer")
      notifications.show({ message: "The upstream’s UI opens in another tab, for an hour." })
    })
  return (
    <Button
      variant="default"
      leftSection={<IconExternalLink size={14} />}
      loading={isBusy}
      onClick={() => void open()}
      {...(error !== null && { title: error.message, "aria-description": error.message })}
      disabled={error?.status === 409}
    >
      {error?.status === 409 ? "The upstream’s UI is off" : "Upstream’s UI"}
    </Button>
  )
}
