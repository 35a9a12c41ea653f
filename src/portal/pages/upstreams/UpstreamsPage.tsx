import { PageHeader } from "../../shared/page/PageHeader.tsx"

const UpstreamsPage = () => <PageHeader title="Upstreams" />

export default UpstreamsPage
