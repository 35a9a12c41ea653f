import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useApiWrite } from "../../../api/queries.ts"
import { statePath } from "../state/limitStates.ts"

interface Props {
  readonly keyId: string
  readonly id: string
}

/** Takes an exception back that was just made. */
export const EndRaise = ({ id, keyId }: Props) => {
  const end = useApiWrite("POST", "/admin-ui/admin/limits/:key_id/raises/:id/end", [
    statePath,
    "/admin-ui/admin/limits/:key_id/raises"
  ])
  return (
    <Button
      variant="subtle"
      disabled={end.isSuccess}
      loading={end.isPending}
      onClick={() =>
        end.mutate(
          { params: { key_id: keyId, id } },
          {
            onSuccess: () => notifications.show({ message: "The exception has ended." }),
            onError: ({ message }) => notifications.show({ color: "red", message })
          }
        )
      }
    >
      Undo
    </Button>
  )
}
