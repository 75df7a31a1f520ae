"""What each place that keeps something owes, whatever it is made of: subclass a contract and say what makes one."""

from tests.kit.storage_contracts.audit import AuditLogContract
from tests.kit.storage_contracts.changes import ChangeFeedContract
from tests.kit.storage_contracts.contents import CatalogContentsContract
from tests.kit.storage_contracts.figures import FigureLogContract
from tests.kit.storage_contracts.keys import KeyStoreContract
from tests.kit.storage_contracts.leases import LeasesContract
from tests.kit.storage_contracts.listings import ListingPersistenceContract
from tests.kit.storage_contracts.messages import MessageStoreContract
from tests.kit.storage_contracts.misses import MissLogContract
from tests.kit.storage_contracts.pins import PinPersistenceContract
from tests.kit.storage_contracts.receipts import ReceiptLogContract
from tests.kit.storage_contracts.records import RecordStoreContract
from tests.kit.storage_contracts.sessions import SessionPersistenceContract
from tests.kit.storage_contracts.storage import BackupContract, StorageContract
from tests.kit.storage_contracts.usage import UsageStoreContract
from tests.kit.storage_contracts.vectors import VectorStoreContract

__all__ = [
    "AuditLogContract",
    "BackupContract",
    "CatalogContentsContract",
    "ChangeFeedContract",
    "FigureLogContract",
    "KeyStoreContract",
    "LeasesContract",
    "ListingPersistenceContract",
    "MessageStoreContract",
    "MissLogContract",
    "PinPersistenceContract",
    "ReceiptLogContract",
    "RecordStoreContract",
    "SessionPersistenceContract",
    "StorageContract",
    "UsageStoreContract",
    "VectorStoreContract",
]
